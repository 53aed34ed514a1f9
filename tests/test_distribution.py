"""The package as a stranger gets it: built, installed into an empty environment, run from an empty folder."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from install import find_uv, follow_pip_configuration

from postern import __version__
from postern.surfaces.console import documentation
from support.packed import unpack
from support.plain_http import WITHOUT_TLS
from support.program import run_command
from support.waiting import PATIENCE, free_port, wait_until

ROOT = Path(__file__).resolve().parent.parent
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
ASSETS = BUILD["hooks"]["custom"]["assets"]
PLACES = ("/usr/bin", "/usr/local/bin", "~/.pyenv/versions/*/bin", "~/.local/share/uv/python/*/bin")
UV = find_uv()


def pythons() -> dict[str, str]:
    """Returns by version the one that runs the tests, and the oldest and the newest on this machine that Postern supports: what
    they agree on holds between them, and each takes a quarter of a minute."""
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    found = {own: sys.executable}
    for place in PLACES:
        folder = Path(place).expanduser()
        for program in sorted(
            Path(folder.anchor).glob(f"{folder.relative_to(folder.anchor)}/python3.1[1-9]")
        ):
            found.setdefault(program.name.removeprefix("python"), str(program))
    return {version: found[version] for version in {own, min(found), max(found)}}


@dataclass
class Built:
    wheel: Path
    sdist: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    target = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return Built(next(target.glob("*.whl")), next(target.glob("*.tar.gz")))


def files_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


def test_it_is_called_as_the_documents_say(built: Built) -> None:
    assert built.wheel.name == f"postern_gateway-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(built.wheel) as opened:
        folder = f"postern_gateway-{__version__}.dist-info"
        metadata = opened.read(f"{folder}/METADATA").decode()
        assert opened.read(f"{folder}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert "postern/py.typed" in opened.namelist()
    extras = re.findall(r"^Provides-Extra: (.*)$", metadata, re.MULTILINE)
    assert extras == ["dbos", "mcp", "postgres", "temporal"]


def test_the_wheel_holds_every_file_of_the_package(built: Built) -> None:
    listed = run_command("git", "ls-files", "src/postern", folder=ROOT)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    ours = {name.removeprefix("src/") for name in listed.stdout.split() if (ROOT / name).exists()}
    assert ours - files_in(built.wheel) == set()
    with zipfile.ZipFile(built.wheel) as opened:
        assets = {
            one.filename: one.file_size for one in opened.infolist() if "/static/vendor/" in one.filename
        }
    assert set(ASSETS.values()) <= {Path(name).name for name in assets} and min(assets.values()) > 0


def test_the_wheel_holds_the_documentation_that_the_console_shows(built: Built) -> None:
    there = "postern/surfaces/console/documentation/"
    held = [name.removeprefix(there) for name in files_in(built.wheel) if name.startswith(there)]
    assert {name.removesuffix(".md") for name in held if name.endswith(".md")} == set(documentation.names())


def test_a_wheel_made_from_the_sdist_is_the_same_and_needs_no_npm(built: Built, tmp_path: Path) -> None:
    unpack(built.sdist, tmp_path)
    unpacked = next(tmp_path.glob("postern_gateway-*"))
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(command, cwd=unpacked, env={**os.environ, "PATH": str(tmp_path)}, check=True)
    assert files_in(next(tmp_path.glob("*.whl"))) == files_in(built.wheel)


@dataclass
class Installed:
    bin: Path
    folder: Path
    """An empty folder with a space in its name: the newcomer types the commands there."""

    def environment(self, **settings: str) -> dict[str, str]:
        home = self.folder.parent / "home"
        home.mkdir(exist_ok=True)
        return {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", **settings}

    def run(self, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return run_command(*command, folder=self.folder, environment=self.environment(**settings))


def install(python: str, package: Path, folder: Path) -> Installed:
    """Installs the versions that the lock names: whether newer ones work is not asked here."""
    assert UV is not None
    follow_pip_configuration()
    venv = folder / "venv"
    subprocess.run([UV, "venv", "--quiet", "--python", python, str(venv)], check=True)
    lock = ROOT / "requirements.lock"
    subprocess.run(
        [UV, "pip", "install", "--quiet", "--python", str(venv / "bin/python"), "--constraint", str(lock), str(package)],
        check=True,
    )  # fmt: skip
    empty = folder / "an empty folder"
    empty.mkdir()
    return Installed(venv / "bin", empty)


@contextmanager
def serving(installed: Installed) -> Iterator[str]:
    """Yields what `postern serve --example` prints in an empty folder."""
    port = str(free_port())
    output = installed.folder.parent / "output"
    with output.open("w") as file:
        process = subprocess.Popen(
            ["postern", "serve", "--example"],
            cwd=installed.folder,
            env=installed.environment(POSTERN_PORT=port),
            stdout=file,
            stderr=file,
            executable=str(installed.bin / "postern"),
        )
    try:
        wait_until(
            lambda: process.poll() is not None or "Try it:" in output.read_text(),
            what=lambda: f"the greeting; it said:\n{output.read_text()}",
        )
        yield output.read_text()
        process.terminate()
        assert process.wait(PATIENCE) == 0, output.read_text()
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(UV is None, reason="uv makes the environments, and it could not be installed")
@pytest.mark.parametrize("version", sorted(pythons()))
def test_the_first_minute_with_the_wheel(version: str, built: Built, tmp_path: Path) -> None:
    installed = install(pythons()[version], built.wheel, tmp_path)
    assert installed.run("postern", "--version").stdout == f"postern {__version__}\n"
    with serving(installed) as greeting:
        assert re.search(r"Sign in to the console as admin with the password \S+", greeting)
        curl = greeting.partition("Try it:")[2].strip()
        answer = installed.run("sh", "-c", f"{curl} --silent --show-error")
        assert "#1001" in answer.stdout, (curl, answer, greeting)
        assert (installed.folder / "workflows" / "order_lookup.py").exists()
        address = re.search(r"http://127\.0\.0\.1:\d+", greeting)
        assert address is not None
        for path in ("/readyz", "/sign-in", "/docs", "/api/v1/openapi.json"):
            page = httpx2.get(address[0] + path, trust_env=False, verify=WITHOUT_TLS, timeout=PATIENCE)
            assert page.status_code == 200, path
            for asset in re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text):
                found = httpx2.get(address[0] + asset, trust_env=False, verify=WITHOUT_TLS)
                assert found.status_code == 200, asset
        listed = installed.run("postern", "webhooks", "list")
        assert "Example: order look-up" in listed.stdout
        assert "shopify" in installed.run("postern", "signatures", "providers").stdout
    if pythons()[version] == sys.executable:  # the same lines say it whichever Python runs them
        without_what_it_asks_for(installed)


def without_what_it_asks_for(installed: Installed) -> None:
    """The plain installation lacks the extras, and says so when one is asked for."""
    url = "postgresql://nobody/x"
    dbos = {"POSTERN_ENGINE": "dbos", "POSTERN_DBOS_DATABASE_URL": url}
    asked = {
        "postgres": installed.run("postern", "webhooks", "list", POSTERN_DATABASE_URL=url),
        "temporal": installed.run("postern", "serve", POSTERN_ENGINE="temporal"),
        "dbos": installed.run("postern", "serve", **dbos),
        "mcp": installed.run("postern", "mcp"),
    }
    for extra, ran in asked.items():
        assert ran.returncode == 2, (extra, ran)
        assert ran.stderr.strip().endswith(f"in a checkout pip install '.[{extra}]'"), ran.stderr
        assert len(ran.stderr.strip().splitlines()) == 1, ran.stderr
    copied = installed.run("postern", "copy", "--from", "sqlite:///data/postern.db", "--to", url)
    assert (copied.returncode, "postern-gateway[postgres]" in copied.stderr) == (2, True), copied
