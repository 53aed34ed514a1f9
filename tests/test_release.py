"""A release, made on a copy of the repository: what `make release` leaves, and when it changes nothing."""

import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import release
from sbom import sbom

from support.program import run_command

ROOT = Path(__file__).resolve().parent.parent
VENDOR = "src/postern/surfaces/console/static/vendor"
SOMEBODY = {
    f"GIT_{role}_{what}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
SOMEBODY["PATH"] = "/usr/local/bin:/usr/bin:/bin"
REPOSITORY = "https://git.example.com/them/postern"


def git(folder: Path, *words: str) -> str:
    ran = run_command("git", *words, folder=folder, environment=SOMEBODY)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a repository with one commit of what is in the worktree now. It stays as it is."""
    copy = tmp_path_factory.mktemp("release") / "repository"
    listed = run_command("git", "ls-files", "--cached", "--others", "--exclude-standard", folder=ROOT)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file() and not name.startswith(("tests/", "docs/console/")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    shutil.copytree(ROOT / VENDOR, copy / VENDOR)
    git(copy, "init", "--quiet")
    git(copy, "add", ".")
    git(copy, "commit", "--quiet", "--message", "All of it")
    return copy


@dataclass
class Released:
    repository: Path
    ran: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def released(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Released:
    """A copy of it, of which the first version has been released."""
    copy = tmp_path_factory.mktemp("released") / "repository"
    shutil.copytree(repository, copy)
    return Released(copy, make_release(copy, "0.1.0", "--repository", REPOSITORY))


def make_release(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "scripts/release.py", *words, "--date", "2027-01-02")
    return run_command(*command, folder=repository, environment=SOMEBODY)


def test_a_release_is_dated_committed_tagged_and_built(released: Released) -> None:
    repository = released.repository
    assert released.ran.returncode == 0, released.ran.stderr
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "log", "-1", "--format=%s") == "Release 0.1.0"
    assert "## 0.1.0 (2027-01-02)" in (repository / "CHANGELOG.md").read_text()
    for page in release.SAYING_NOT_PUBLISHED:
        assert "Nothing is published" not in (repository / page.relative_to(release.ROOT)).read_text()
    notes = git(repository, "tag", "--list", "--format=%(contents)", "v0.1.0")
    assert "### Running it" in notes  # git takes a heading for a comment unless it is told not to

    dist = repository / "dist"
    names = {"postern_gateway-0.1.0-py3-none-any.whl", "postern_gateway-0.1.0.tar.gz"}
    names |= {"postern-gateway-0.1.0.cdx.json", "SHA256SUMS"}
    assert {file.name for file in dist.iterdir()} == names
    for line in (dist / "SHA256SUMS").read_text().splitlines():
        digest, _, name = line.partition("  ")
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    with zipfile.ZipFile(dist / "postern_gateway-0.1.0-py3-none-any.whl") as wheel:
        metadata = wheel.read("postern_gateway-0.1.0.dist-info/METADATA").decode()
    assert f"Project-URL: Source, {REPOSITORY}\n" in metadata
    links = re.findall(r"\]\(([^)#]+)\)", metadata)
    assert f"{REPOSITORY}/blob/v0.1.0/docs/quickstart.md" in links
    assert [link for link in links if not link.startswith("https://")] == []

    again = make_release(repository, "0.1.0")
    assert (again.returncode, again.stderr) == (1, "release: 0.1.0 is not newer than v0.1.0\n")
    unwritten = make_release(repository, "0.2.0")
    assert (unwritten.returncode, "not released yet" in unwritten.stderr) == (1, True)


def test_two_builds_of_one_commit_are_the_same_to_the_byte(released: Released) -> None:
    repository = released.repository
    assert released.ran.returncode == 0, released.ran.stderr
    sums = (repository / "dist" / "SHA256SUMS").read_text()
    for file in repository.rglob("*.py"):
        file.touch()
    command = "import release; release.build('0.1.0')"
    assert run_command(sys.executable, "-c", command, folder=repository / "scripts").returncode == 0
    assert (repository / "dist" / "SHA256SUMS").read_text() == sums


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["0.1"], "0.1 is no version"),
        (["v0.1.0"], "v0.1.0 is no version"),
        (["01.2.3"], "01.2.3 is no version"),
        (["0.1.0"], "give REPOSITORY="),
        (["0.1.0", "--repository", "git@example.com:x"], "begins with https://"),
    ],
)
def test_what_cannot_be_released_changes_nothing(repository: Path, words: list[str], sentence: str) -> None:
    ran = make_release(repository, *words)
    assert ran.returncode == 1
    assert sentence in ran.stderr
    assert git(repository, "status", "--porcelain") + git(repository, "tag") == ""


def test_only_what_is_said_before_the_first_release_goes() -> None:
    page = "Two.\n\n**Nothing is published yet**, so\nwait.\n\nIt serves.\n\n- One.\n- **Nothing is published yet.** No\n  version.\n- Three.\n"
    assert release.published(page) == "Two.\n\nIt serves.\n\n- One.\n- Three.\n"


def test_what_is_not_committed_is_not_released(repository: Path) -> None:
    page = repository / "README.md"
    committed = page.read_bytes()
    page.write_text("changed")
    ran = make_release(repository, "0.1.0", "--repository", REPOSITORY)
    page.write_bytes(committed)
    assert (ran.returncode, "commit or put away" in ran.stderr) == (1, True)


def test_a_version_is_compared_by_its_numbers() -> None:
    changelog = "# Changelog\n\n## 0.10.0 (not released yet)\n\n- New.\n\n## 0.9.0 (2026-01-01)\n\n- Old.\n"
    assert release.notes(release.dated(changelog, "0.10.0", "2027-01-02"), "0.10.0") == "0.10.0\n\n- New.\n"


def test_the_list_of_components_names_every_locked_package() -> None:
    npm = json.loads((ROOT / "package-lock.json").read_text())
    lock = (ROOT / "requirements.lock").read_text()
    listed = {(one["name"], one["version"]) for one in sbom(lock, npm, "0.1.0")["components"]}
    assert set(re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE)) <= listed
    assert ("htmx.org", npm["packages"]["node_modules/htmx.org"]["version"]) in listed
