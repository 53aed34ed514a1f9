"""A gateway ready for use cases: the store, the engine, what fetches, and the directory of webhooks."""

import fcntl
import hashlib
import hmac
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import (
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    redirect_stdout,
    suppress,
)
from functools import partial
from pathlib import Path

from sqlalchemy.engine import make_url

from postern import identity
from postern.core.address import Allowlist
from postern.core.answer import LARGEST_RESPONSE
from postern.core.deliveries.delivery import EngineUnavailable, Workflow
from postern.core.fetched import Fetched
from postern.core.operations.retention import RetentionPolicy
from postern.core.watch.alarms import AlarmPolicy
from postern.core.watch.channels import MailServer
from postern.observe.calls import CallLog
from postern.observe.logs import log
from postern.observe.watching import Watch
from postern.outbound.fetch import Fetcher
from postern.outbound.guard import Guard
from postern.private_files import openness, private_file, private_folder
from postern.settings import Settings
from postern.stores.secrets.keys import holds_secrets
from postern.stores.secrets.vault import VaultError, key_from_file
from postern.stores.sql import schema
from postern.stores.store import Store
from postern.surfaces.cli.run import NOT_FOUND, USAGE
from postern.usecases.deliveries.dispatch import LEASE
from postern.usecases.ports import Engine
from postern.usecases.runtime.directory import Directory
from postern.usecases.runtime.gateway import Gateway, Outbound, WorkflowFiles
from postern.usecases.runtime.key_sets import KEPT_FOR
from postern.usecases.runtime.live_feed import LiveFeed
from postern.usecases.runtime.process import Runtime
from postern.usecases.runtime.site import Site
from postern.usecases.webhooks.compiling import compile_webhook
from postern.wiring.engines import make_engine, open_engine
from postern.wiring.starting import CannotStart, ends_at_ctrl_c
from postern.wiring.targets import Targets
from postern.workflows.load import Loaded, load

MOUNTS = Path("/proc/self/mounts")
NETWORK = {"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "fuse.glusterfs", "fuse.rclone"}


def secret_keys(settings: Settings) -> list[str]:
    if settings.secret_keys:
        return settings.secret_keys
    file = settings.data_dir / "secret.key"
    if not file.exists() and holds_secrets(settings.database):
        # Most likely a command, typed without the service's environment. A key of its own would be no use to
        # anybody, and what it encrypts would be lost to the gateway.
        raise VaultError(
            f"the secrets in this database are encrypted with a key that is not given here: there is no {file}, and "
            "POSTERN_SECRET_KEYS (or POSTERN_SECRET_KEYS_FILE) is not set. Set it as it is set for the gateway"
        )
    private_folder(settings.data_dir)
    key = key_from_file(file)
    private_file(file)  # somebody may have brought it
    return [key]


def _derived(keys: list[str], purpose: bytes) -> list[bytes]:
    return [hmac.new(key.encode(), purpose, hashlib.sha256).digest() for key in keys]


ANYWHERE = Allowlist.parse(["0.0.0.0/0", "::/0"])


class Outside:
    """The requests that the gateway itself makes."""

    def __init__(self, allowed: Allowlist, base_url: str, mail_server: MailServer | None) -> None:
        self._base_url = base_url
        self._fetcher = Fetcher(allowed_ranges=allowed)
        self._own = Fetcher(allowed_ranges=ANYWHERE)
        self.targets = Targets(allowed)
        self._guard, self._mail_server = Guard(allowed), mail_server
        self.fetch, self.prepare_own = self._fetcher.fetch, self._own.prepare
        # Where it leads, a sender's key set does not send anybody on.
        self.fetch_keys = partial(self._fetcher.fetch, max_redirects=0)

    async def call_own(
        self, target: str, headers: Mapping[str, str], content: bytes, timeout: float
    ) -> Fetched:
        # The address is the operator's own setting; what follows it cannot lead to another host.
        return await self._own.fetch(
            f"{self._base_url}/{target.lstrip('/')}", method="POST", headers=headers, content=content,
            # A redirect may be what the workflow has answered: it is answered, and not followed.
            timeout=timeout, max_bytes=LARGEST_RESPONSE, max_redirects=None,
        )  # fmt: skip

    async def mail(self, recipients: str, subject: str, text: str, key: str) -> None:
        from postern.outbound.mail import send_mail

        if self._mail_server is not None:
            await send_mail(self._guard, self._mail_server, recipients, subject, text, key)

    async def aclose(self) -> None:
        await self.targets.aclose()
        await self._fetcher.aclose()
        await self._own.aclose()


@asynccontextmanager
async def opened(
    settings: Settings,
    serving_on: str | None = None,
    watch: Watch | None = None,
    *,
    migrates: bool = True,
    begins: bool = True,
) -> AsyncIterator[Gateway]:
    """A gateway ready for use cases. ``serving_on`` is the address it serves on: only then does it have an
    engine. ``watch`` is called with what becomes of the workflow files and of runs, where that is the embedded one.
    ``migrates``: the database of an older version is brought up to date, if it is SQLite. ``begins``: where there is no
    database, one is made. Whatever is refused, nothing has been written then, and no key been made."""
    # First: it may say that its settings cannot work.
    engine = make_engine(settings, watch) if serving_on else None
    file = database_file(settings)
    is_new = file is not None and not file.exists()
    if is_new:
        _look_for_an_earlier_one(settings)
        if not begins:
            raise CannotStart(
                f"There is no database in {settings.data_dir.resolve()}. POSTERN_DATA_DIR says where it is, and `postern serve` "
                "begins one.",
                NOT_FOUND,
            )
    if begins:
        private_folder(settings.data_dir)
    schema.prepare(settings.database, migrates=migrates or is_new)
    keys = secret_keys(settings)
    store = Store(settings.database, keys)
    await store.open()
    async with AsyncExitStack() as at_the_end:
        at_the_end.push_async_callback(store.close)
        runs_workflows = serving_on is not None and settings.engine == "embedded"
        if runs_workflows and not store.alone():
            raise CannotStart(
                "Another Postern with the embedded engine serves this database. Give this one POSTERN_ENGINE=none, or all of them an engine they can share."
            )
        base_url = _base_url(settings, serving_on)
        outside = Outside(settings.outbound_allowed, base_url, settings.smtp_url)
        gateway = _assembled(settings, serving_on, base_url, keys, store, engine, outside)
        at_the_end.callback(gateway.runtime.call_log.flush)
        at_the_end.push_async_callback(outside.aclose)
        if engine is not None:
            at_the_end.push_async_callback(engine.close)
        await gateway.runtime.directory.refresh()
        for address, text, fetched_at in await store.sender_keys.all():
            gateway.runtime.key_sets.take_in(address, text, gateway.clock() - fetched_at)
        gateway.runtime.key_sets.keep = lambda address, text: gateway.runtime.background(
            store.sender_keys.keep(address, text, gateway.clock(), KEPT_FOR)
        )
        if serving_on is not None:
            gateway.runtime.key_sets.fetch = outside.fetch_keys
        if runs_workflows or (serving_on is not None and settings.is_sqlite):
            # This process is alone: what one that died had claimed need not wait for its lease to run out.
            if store.database.file is not None:
                store.database.file.note_log()
            await store.deliveries.release(gateway.clock(), LEASE)
            await store.schedules.release(gateway.clock())
            await store.replays.release(gateway.clock())
        if engine is not None:
            await open_engine(engine, gateway, settings)
        yield gateway


def _assembled(
    settings: Settings,
    serving_on: str | None,
    base_url: str,
    keys: list[str],
    store: Store,
    engine: Engine | None,
    outside: Outside,
) -> Gateway:
    workflows = workflows_of(settings, serving_on)

    async def known_workflows() -> tuple[list[Workflow] | None, list[str]]:
        if settings.engine != "embedded":
            return None, []
        loaded = load_workflows(workflows)
        if loaded.failed and workflows.exists():
            raise EngineUnavailable(f"the workflows file has an error: {loaded.failed.error}")
        known = [
            Workflow(workflow.name, workflow.webhook_ids, workflow.help, workflow.source)
            for workflow in loaded.workflows
        ]
        return known, [str(fault) for fault in loaded.broken if workflows.exists()]

    return Gateway(
        store=store,
        site=Site(
            base_url,
            serving_on if serving_on and settings.engine == "embedded" else base_url,
            _derived(keys, b"postern response tokens"),
            hashlib.sha256(settings.admin_key.encode()).digest() if settings.admin_key else None,
            _derived(keys, b"postern known browsers"),
            settings.client_header,
        ),
        runtime=Runtime(
            Directory(store.webhooks, compile_webhook),
            LiveFeed(store.history, identity.clock),
            call_log=CallLog(style=settings.log),
        ),
        engine=engine,
        workflow_files=WorkflowFiles(workflows if settings.engine == "embedded" else None, known_workflows),
        outbound=Outbound(
            outside.fetch,
            outside.targets.of,
            settings.outbound_allowed if serving_on else None,
            outside.call_own,
            outside.prepare_own,
            outside.mail,
        ),
        retention=RetentionPolicy(
            settings.history_days, settings.body_days, settings.history_rows, settings.audit_days
        ),
        alarms=AlarmPolicy(
            settings.alarms,
            settings.quiet_days,
            settings.tell,
            settings.tell_values == "on",
            bool(settings.smtp_url),
        ),
        settings=settings.listed(),
    )


def load_workflows(path: Path) -> Loaded:
    # A file's own prints are no part of a command's output.
    with ends_at_ctrl_c(), redirect_stdout(sys.stderr):
        return load(path)


def database_file(settings: Settings) -> Path | None:
    return Path(make_url(settings.database).database or "") if settings.is_sqlite else None


def _look_for_an_earlier_one(settings: Settings) -> None:
    """An empty database beside the files of an old one would answer every sender 404, and look healthy."""
    left = [name for name in ("secret.key", "engine.db") if (settings.data_dir / name).exists()]
    if left:
        raise CannotStart(
            f"There is no database {database_file(settings)}, but {settings.data_dir} holds {' and '.join(left)} of an earlier "
            "one: was it moved or deleted? Put it back, or run `postern migrate` to begin an empty one."
        )


def _base_url(settings: Settings, serving_on: str | None) -> str:
    """The address before every webhook's path. A command that was typed without the server's settings tells
    URLs that lead there all the same: the one that serves leaves its address in the data folder."""
    left = settings.data_dir / "address"
    if serving_on is not None:
        private_file(left)
        left.write_text((settings.base_url or serving_on) + "\n")
    known = left.read_text().strip() if left.exists() and settings.port == int(Settings.port.default) else ""
    if settings.base_url or serving_on or known:
        return settings.base_url or serving_on or known
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{host}:{settings.port}"


def workflows_of(settings: Settings, serving_on: str | None = None) -> Path:
    """A command that was typed without the server's settings looks where the one that serves has looked."""
    left = settings.data_dir / "workflows.path"
    if serving_on is not None:
        private_file(left)
        left.write_text(f"{settings.workflows.resolve()}\n")
    elif "workflows" not in settings.sources and left.exists():
        return Path(left.read_text().removesuffix("\n"))
    return settings.workflows


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """One serving process per data folder, for two would run the same unfinished workflows twice; and per SQLite
    database, for each takes what the other one has claimed for a dead process's."""
    _look_at_folder(settings.data_dir)
    database = database_file(settings)
    if database is not None or settings.engine == "embedded":
        _look_at_file_system(
            database.resolve().parent if database is not None else settings.data_dir.resolve()
        )
    with (
        held(settings.data_dir / "serving.lock", settings.data_dir, "POSTERN_DATA_DIR"),
        database_held(str(database)) if database is not None else nullcontext(),
    ):
        yield


def _look_at_file_system(folder: Path) -> None:
    """Warns of a network file system, as far as the system tells. There two gateways can both hold the lock, and
    SQLite's own locks keep nobody out either. No table of mounts, whatever it holds, stops a start."""
    with suppress(OSError, ValueError):
        kinds = {
            Path(place.replace("\\040", " ")): kind
            for _, place, kind, *_ in map(str.split, MOUNTS.read_text().splitlines())
        }
        # In a chroot `/` is no mount, and there may be none above the folder.
        kind = next((kinds[parent] for parent in (folder, *folder.parents) if parent in kinds), "")
        if kind in NETWORK:
            log.warning(
                "SQLite's file is on a network file system, which may damage it",
                folder=str(folder),
                kind=kind,
            )


def _look_at_folder(folder: Path) -> None:
    """Refuses or warns of a folder that others may write into: they could replace the keys, the database and the work
    of workflows."""
    risk = openness(folder)
    if risk is None:
        return
    if risk.is_lost:
        raise CannotStart(
            f"The data folder {folder.resolve()} is not safe: {risk.problem}. Make it this user's own (chown, then chmod 700), "
            "or set POSTERN_DATA_DIR to another folder.",
            USAGE,
        )
    log.warning("other users can reach the data folder", folder=str(folder.resolve()), problem=risk.problem)


@contextmanager
def database_held(database: str) -> Iterator[None]:
    """Holds a lock beside the database itself, whatever links lead there: two data folders may name the same
    database."""
    path = Path(database).resolve()
    with held(path.with_name(path.name + ".lock"), path, "database"):
        yield


@contextmanager
def held(lock: Path, what: Path, own: str) -> Iterator[None]:
    private_folder(lock.parent)
    private_file(lock)  # who can open it can hold it, and nobody could serve
    with open(lock, "a") as file:  # it says which log belongs to the database
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CannotStart(
                f"Another Postern already serves {what.resolve()}. Stop it first, or give this one its own {own}."
            ) from None
        yield
