"""`make release VERSION=0.2.0`: the changelog's date, a commit, a tag, and everything that is to be published, in
`dist/`. The Makefile has asked what is in the way (`--check`) and run all checks before. Nothing is published here: what is left is printed.

The first release also needs to know where the source is to be found: REPOSITORY=https://…
"""

import argparse
import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
CHANGELOG = ROOT / "CHANGELOG.md"
PYPROJECT = ROOT / "pyproject.toml"
VERSION_FILE = ROOT / "src" / "postern" / "__init__.py"
NOT_RELEASED = "not released yet"
SAYING_NOT_PUBLISHED = ROOT / "README.md", ROOT / "docs" / "not-yet.md"

_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--repository", default="")
    parser.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    parser.add_argument("--check", action="store_true", help="say what is in the way, and change nothing")
    asked = parser.parse_args()
    check(asked.version, asked.repository)
    changelog = dated(CHANGELOG.read_text(), asked.version, asked.date)
    if asked.check:
        return
    if asked.repository:
        PYPROJECT.write_text(with_urls(PYPROJECT.read_text(), asked.repository.rstrip("/")))
    CHANGELOG.write_text(changelog)
    for page in SAYING_NOT_PUBLISHED:
        page.write_text(published(page.read_text()))
    VERSION_FILE.write_text(re.sub(r'(?<=__version__ = ").*(?=")', asked.version, VERSION_FILE.read_text()))
    run("git", "commit", "--quiet", "--all", "--allow-empty", "--message", f"Release {asked.version}")
    run(
        "git",
        "tag",
        "--annotate",
        "--cleanup=whitespace",
        f"v{asked.version}",
        "--message",
        notes(changelog, asked.version),
    )
    build(asked.version)
    print(
        f"\ndist/ has {', '.join(sorted(file.name for file in DIST.iterdir()))}.\n\nLook at it. Then publish:\n\n"
        f"  git push --follow-tags\n"
        f"  uv publish dist/*.whl dist/*.tar.gz\n"
        f"  docker build --tag postern-gateway:{asked.version} --build-arg VERSION={asked.version} ."
    )


def check(version: str, repository: str) -> None:
    """Raises ``SystemExit`` with a sentence before anything is changed."""
    if not _VERSION.fullmatch(version):
        stop(f"{version} is no version like 0.2.0")
    if changed := output("git", "status", "--porcelain"):
        stop(f"commit or put away what is changed first:\n{changed}")
    tags = [tag for tag in output("git", "tag", "--list", "v*").split() if _VERSION.fullmatch(tag[1:])]
    if any(_numbers(tag[1:]) >= _numbers(version) for tag in tags):
        stop(f"{version} is not newer than {max(tags, key=lambda tag: _numbers(tag[1:]))}")
    if repository and not repository.startswith("https://"):
        stop("REPOSITORY begins with https://")
    if not repository and "urls" not in tomllib.loads(PYPROJECT.read_text())["project"]:
        stop("nobody knows yet where the source is to be found: give REPOSITORY=https://… this once")


def dated(changelog: str, version: str, date: str) -> str:
    """The part that is not released yet gets its version and its date."""
    heading = re.search(rf"^## .*\({NOT_RELEASED}\)$", changelog, re.MULTILINE)
    if heading is None:
        stop(f"CHANGELOG.md has no part that is {NOT_RELEASED}")
    if not notes(changelog, heading[0].split()[1]).strip():
        stop("CHANGELOG.md says nothing about this version")
    return changelog.replace(heading[0], f"## {version} ({date})", 1)


def published(page: str) -> str:
    """Removes the paragraph, or the item of a list, that says that the first release is still to come."""
    return re.sub(
        r"^(- )?\*\*Nothing is published yet.*?\n(?=- |\n)\n?", "", page, flags=re.MULTILINE | re.DOTALL
    )


def notes(changelog: str, version: str) -> str:
    """Returns the changelog's text about a version."""
    part = re.search(rf"^## {re.escape(version)} .*\n((?:(?!## ).*\n?)*)", changelog, re.MULTILINE)
    return f"{version}\n\n{part[1].strip()}\n" if part and part[1].strip() else ""


def with_urls(pyproject: str, repository: str) -> str:
    if "\n[project.urls]\n" in pyproject:
        stop("[project.urls] is there already: change it in pyproject.toml")
    table = f"""[project.urls]
Source = "{repository}"
Documentation = "{repository}/blob/main/docs/quickstart.md"
Changelog = "{repository}/blob/main/CHANGELOG.md"
Issues = "{repository}/issues"

"""
    return pyproject.replace("[project.scripts]\n", f"{table}[project.scripts]\n")


def build(version: str) -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    # Whoever builds the same commit again gets the same bytes.
    built_at = {"SOURCE_DATE_EPOCH": output("git", "log", "-1", "--format=%ct")}
    run(sys.executable, "-m", "hatchling", "build", "--directory", str(DIST), **built_at)
    components = output(sys.executable, str(ROOT / "scripts" / "sbom.py"), PYTHONPATH=str(ROOT / "src"))
    (DIST / f"postern-gateway-{version}.cdx.json").write_text(components + "\n")
    files = sorted(DIST.iterdir())
    sums = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    (DIST / "SHA256SUMS").write_text(sums)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def run(*command: str, **environment: str) -> None:
    if subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False).returncode:
        stop(f"this step failed: {' '.join(command[:3])}")


def output(*command: str, **environment: str) -> str:
    ran = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    return ran.stdout.strip() if ran.returncode == 0 else stop(ran.stderr.strip())


def stop(sentence: str) -> NoReturn:
    sys.exit(f"release: {sentence}")


if __name__ == "__main__":
    main()
