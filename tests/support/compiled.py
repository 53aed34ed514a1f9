"""What a Python has compiled of the locked packages, for the next environment into which they are installed. Each Python
would compile a thousand modules anew in each of them: most of what the first minute in an environment takes.

Ours are never among them. A compiled module is kept with the hash of its source, which the interpreter compares with the
source that was installed: if that is another one, it is compiled as ever.
"""

import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

from support import kept

KEEP = """
import sys
from importlib.util import source_from_cache, source_hash
from pathlib import Path

here, there = map(Path, sys.argv[1:])
BY_TIME, BY_HASH = (0).to_bytes(4, "little"), (3).to_bytes(4, "little")
for file in here.rglob("*.pyc"):
    source = Path(source_from_cache(str(file)))
    place = there / file.relative_to(here)
    compiled = file.read_bytes()
    if source.exists() and file.relative_to(here).parts[0] != "postern" and compiled[4:8] in (BY_TIME, BY_HASH):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(compiled[:4] + BY_HASH + source_hash(source.read_bytes()) + compiled[16:])
"""


def lend_compiled(environment: Path, lock: Path) -> None:
    """Into an environment to which nothing but the packages of this lock, and ours, were installed."""
    folder = kept.CACHE / _name(environment, lock)
    if folder.exists():
        shutil.copytree(folder, _packages(environment), dirs_exist_ok=True)


def keep_compiled(environment: Path, lock: Path) -> None:
    """After it was used: what nobody has loaded is not worth compiling."""
    command = [_python(environment), "-c", KEEP, str(_packages(environment))]
    kept.kept(_name(environment, lock), lambda fresh: [*command, str(fresh)])


def _name(environment: Path, lock: Path) -> str:
    asked = [_python(environment), "-c", "import sys; print(sys.version, sys.platform)"]
    python = subprocess.run(asked, capture_output=True, check=True).stdout
    return f"compiled-{sha256(lock.read_bytes() + python).hexdigest()[:16]}"


def _python(environment: Path) -> str:
    return str(environment / "bin" / "python")


def _packages(environment: Path) -> Path:
    return next(environment.glob("lib/python*/site-packages"))
