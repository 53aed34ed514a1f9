"""The two commands: what they install is what pyproject.toml asks for, and they say what they can do."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import install
import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from support.program import run_command
from support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME = [
    *PROJECT["project"]["dependencies"],
    *(one for extra in PROJECT["project"]["optional-dependencies"].values() for one in extra),
]
GROUPS = PROJECT["dependency-groups"]
DEVELOPMENT = GROUPS["dev"]
ASSETS = PROJECT["tool"]["hatch"]["build"]["hooks"]["custom"]["assets"]

SETUP = (
    *("scripts/install.py", "pyproject.toml", "hatch_build.py", "package-lock.json"),
    *("requirements.lock", "requirements-build.lock", "requirements-uv.lock"),
)
STAND_IN = """#!/bin/sh
trap 'sleep 0.3; echo ended; exit 0' INT TERM
echo "$POSTERN_PORT $*"
while :; do sleep 0.05; done
"""
LOCKS = ["requirements.lock", "requirements-dev.lock", "requirements-build.lock", "requirements-uv.lock"]


def locked(name: str) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)(?:\[.*?\])?==(\S+)", (ROOT / name).read_text(), re.MULTILINE)
    return {canonicalize_name(package): version for package, version in found}


@pytest.mark.parametrize(
    ("lock", "wanted"),
    list(zip(LOCKS, [RUNTIME, RUNTIME + DEVELOPMENT, GROUPS["build"], GROUPS["uv"]], strict=True)),
)
def test_every_dependency_is_locked_within_its_range(lock: str, wanted: list[str]) -> None:
    versions = locked(lock)
    for requirement in map(Requirement, wanted):
        version = versions.get(canonicalize_name(requirement.name))
        assert version and requirement.specifier.contains(version), (
            f"{requirement} and {lock} disagree: run `make lock`"
        )


def test_what_is_tested_is_what_runs() -> None:
    tested = locked("requirements-dev.lock")
    assert {name: tested.get(name) for name in locked("requirements.lock")} == locked("requirements.lock")


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_holds_names_versions_and_hashes_only(lock: str) -> None:
    for line in (ROOT / lock).read_text().splitlines():
        assert re.fullmatch(r"[\w.-]+==\S+( ; [^/]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_the_assets_lock_holds_no_addresses() -> None:
    assert "://" not in (ROOT / "package-lock.json").read_text()
    assert '"resolved"' not in (ROOT / "tests" / "npm" / "package-lock.json").read_text()


def test_a_build_that_cannot_get_the_assets_fails(tmp_path: Path) -> None:
    """A console without its scripts must not be published by mistake."""
    needed = "pyproject.toml hatch_build.py package.json package-lock.json .npmrc README.md LICENSE"
    for name in needed.split():
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "src" / "postern").mkdir(parents=True)
    shutil.copy(ROOT / "src/postern/__init__.py", tmp_path / "src/postern")
    build = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", "dist")
    built = run_command(*build, folder=tmp_path, environment={**os.environ, "PATH": str(tmp_path)})
    assert built.returncode != 0
    assert "assets come from npm" in built.stderr
    assert not list(tmp_path.glob("dist/*"))


def test_help_lists_every_task() -> None:
    makefile = (ROOT / "Makefile").read_text()
    tasks = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    listed = run_command("make", "help", folder=ROOT).stdout
    assert set(re.findall(r"^  make ([a-z]+) ", listed, re.MULTILINE)) == tasks
    assert set(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[0].split()) == tasks


def test_continuous_integration_runs_the_command_that_people_run() -> None:
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == "exec make test"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_make_run_ends_the_program_before_make(tmp_path: Path, how: signal.Signals) -> None:
    """A stand-in for the program that takes its time to end, as the real one may: make must not leave it
    behind."""
    program = tmp_path / ".venv" / "bin" / "postern"
    program.parent.mkdir(parents=True)
    program.write_text(STAND_IN)
    program.chmod(0o755)
    shutil.copy(ROOT / "Makefile", tmp_path)
    (tmp_path / ".venv" / ".run").touch()

    with subprocess.Popen(
        ["make", "run", "--old-file", ".venv/.run"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "POSTERN_PORT": "8099"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        process_group=0,
    ) as make:
        try:
            assert make.stdout is not None
            assert make.stdout.readline() == "8099 serve --example\n"
            # A terminal's Ctrl-C goes to the whole group; a supervisor's SIGTERM may go to make alone.
            os.killpg(make.pid, how) if how is signal.SIGINT else make.send_signal(how)
            output, _ = make.communicate(timeout=PATIENCE)
            assert output == "ended\n"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(make.pid, signal.SIGKILL)


TRIED = ("3.11", "3.12", "3.13", "3.14", "3.15")


def test_the_pythons_that_were_tried_are_named_and_newer_ones_are_taken() -> None:
    taken = SpecifierSet(PROJECT["project"]["requires-python"])
    assert [f"3.{minor}.1" in taken for minor in range(8, 20)] == [minor >= 11 for minor in range(8, 20)]
    assert f"{install.NEWEST_TRIED[0]}.{install.NEWEST_TRIED[1]}" == TRIED[-1]
    classified = [one.rpartition(" ")[2] for one in PROJECT["project"]["classifiers"] if " :: 3." in one]
    assert classified == list(TRIED)
    for file in ("README.md", "docs/versions.md"):
        assert all(version in (ROOT / file).read_text("utf-8") for version in TRIED)


def install_as(version: str, first: str) -> "subprocess.CompletedProcess[str]":
    parts = tuple(map(int, version.split(".")))
    as_if = f"import sys, runpy; sys.version_info, sys.version = {parts}, '{version} (main)'; sys.path.insert(0, 'scripts'); "
    started = as_if + first + "; runpy.run_path('scripts/install.py', run_name='__main__')"
    return run_command(sys.executable, "-c", started, folder=ROOT)


NOTHING_ELSE = "sys.modules['pathlib'] = sys.modules['chromium'] = None"
"""Modules that an old Python would not understand are not loaded."""


@pytest.mark.parametrize("version", ["3.6.15", "3.9.18", "3.10.14"])
def test_an_older_python_hears_which_ones_it_may_be(version: str) -> None:
    ran = install_as(version, NOTHING_ELSE)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"Python 3.11 or newer is needed, and this is {version};")
    assert ran.stderr.isascii()  # it has no other characters under LC_ALL=C
    asked_by_make = install_as(version, f"{NOTHING_ELSE}; sys.argv[1:] = ['other']")
    assert (asked_by_make.returncode, asked_by_make.stdout, asked_by_make.stderr) == (0, "other-python\n", "")


def test_an_older_python_can_read_the_file_that_says_so() -> None:
    ast.parse((ROOT / "scripts/install.py").read_text("utf-8"), feature_version=(3, 6))


@pytest.mark.parametrize(("version", "is_said"), [("3.11.0", False), ("3.15.2", False), ("3.16.0", True)])
def test_a_newer_python_is_taken_and_told_when_it_has_not_been_tried(version: str, is_said: bool) -> None:
    """It ends at the first step that would start another program."""
    ran = install_as(version, "import subprocess; subprocess.run = lambda *_, **__: sys.exit(9)")
    assert ran.returncode == 9
    assert (f"Python {version} has not been tried yet" in ran.stdout) is is_said


def test_what_pip_is_configured_with_for_the_whole_machine_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = os.path.realpath(sys.executable)  # the environment of the tests has no pip
    monkeypatch.setattr(install, "PIP", [python, "-m", "pip", "--disable-pip-version-check"])
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://mirror.example/simple\ncert = /a/b.pem\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    wanted = {"UV_DEFAULT_INDEX": "https://mirror.example/simple", "SSL_CERT_FILE": "/a/b.pem"}
    for name in (*wanted, "PIP_INDEX_URL", "PIP_CERT"):
        monkeypatch.setenv(name, "")  # what is set in the test goes again with it
        monkeypatch.delenv(name)
    install.follow_pip_configuration()
    assert {name: os.environ.get(name) for name in wanted} == wanted


@pytest.fixture
def other_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of Python 3.12.9, as far as it can be asked."""
    venv = tmp_path / ".venv"
    python = venv / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\ncase $2 in *print*) echo '3.12.9 (main)';; esac\n")
    python.chmod(0o755)
    monkeypatch.setattr(install, "VENV", venv)
    monkeypatch.setattr(install, "BIN", python.parent)
    return python


def test_an_environment_of_another_python_is_kept_and_named_until_another_one_is_asked_for(
    other_python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    this = sys.version.partition(" ")[0]
    install.make_venv(None, anew=False)
    assert other_python.is_file() and not other_python.is_symlink()
    assert f"into .venv as it is, of Python 3.12.9 and not {this};" in capsys.readouterr().out
    install.make_venv(None, anew=True)
    assert f".venv is of Python 3.12.9, and {this} is asked for" in capsys.readouterr().out
    assert (install.of_another_python(), other_python.is_symlink()) == ("", True)
    (install.VENV / "kept").touch()
    install.make_venv(None, anew=True)
    assert (install.VENV / "kept").exists() and not capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "said", "ran"),
    [
        ("PYTHON=./python", "other-python", ["other", "anew"]),
        ("PYTHON=./python", "", ["other"]),
        ("VERSION=1", "other-python", []),
    ],
)
def test_make_asks_about_the_environment_where_a_python_is_asked_for(
    tmp_path: Path, asked: str, said: str, ran: list[str]
) -> None:
    """Everything that has to be installed is there already."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nshift; echo "$*" >> ran\n[ "$1" != other ] || echo {said}\n')
    python.chmod(0o755)
    for file in (*SETUP, ".venv/.run"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    subprocess.run(["make", ".venv/.run", asked], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, check=True)
    log = tmp_path / "ran"
    assert (log.read_text().split() if log.exists() else []) == ran
