"""Plants the bugs of `mutants.toml` one after the other and looks whether the tests named beside each notice.

    python scripts/mutants.py                          all of them
    python scripts/mutants.py stores/ "within a day"   those whose file or text contains one of these

Each is planted in a copy of the repository. It ends with 1 where a bug survives that was noticed before, where one that
survived is noticed now (take its `missing` away), or where a bug's text is not in its file any more (write it anew).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATIENCE = 600
"""Seconds; a bug that makes its tests hang is noticed."""


def copy_of_the_repository(folder: Path) -> Path:
    copy = folder / "copy"
    copy.mkdir()
    for one in ROOT.iterdir():
        if one.name in ("src", "tests"):
            shutil.copytree(one, copy / one.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif one.name != ".git":
            (copy / one.name).symlink_to(one)
    return copy


def outcome(copy: Path, bug: dict[str, str]) -> str:
    source = copy / "src" / "postern" / bug["file"]
    text = source.read_text() if source.exists() else ""
    if text.count(bug["old"]) != 1:
        return f"STALE: its text is there {text.count(bug['old'])} times"
    source.write_text(text.replace(bug["old"], bug["new"]))
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider"]
    try:
        ran = subprocess.run(
            [*command, *bug["tests"].split()],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        code = ran.returncode
    except subprocess.TimeoutExpired:
        code = 1
    finally:
        source.write_text(text)
    if code not in (0, 1, 2):  # 2: the bug keeps a module from being imported, or a worker ended
        return f"STALE: pytest ended with {code}: {ran.stdout[-300:]}"
    known = "missing" in bug
    if code == 0:
        return f"survives, as is known: {bug['missing']}" if known else "SURVIVES"
    return "NOTICED now" if known else "noticed"


def main() -> None:
    bugs = tomllib.loads((ROOT / "scripts" / "mutants.toml").read_text())["bugs"]
    wanted = [bug for bug in bugs if not sys.argv[1:] or any(part in str(bug) for part in sys.argv[1:])]
    surprises = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = copy_of_the_repository(Path(folder))
        for bug in wanted:
            found = outcome(copy, bug)
            surprises += found[:2].isupper()
            print(f"{bug['file']}: {bug['old']!r} -> {bug['new']!r}: {found}", flush=True)
    print(f"{len(wanted)} bugs, {surprises} not as expected")
    sys.exit(1 if surprises else 0)


if __name__ == "__main__":
    main()
