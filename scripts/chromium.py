"""Finds Chromium, or gets it: $CHROMIUM, the system's, Debian's package (as root), or the one in npm's
@sparticuz/chromium. The headless shell comes first: it is the same engine without the parts of a desktop browser, so
that a new page takes a quarter of the processor time. Playwright's own download is not used: it comes from no package
registry."""

import os
import shutil
import subprocess
from pathlib import Path

from debian import install_from_debian

TOOLS = Path(__file__).resolve().parent.parent / ".tools"
NPM_PACKAGE = "@sparticuz/chromium@^153.0.0"
UNPACKED = TOOLS / "chromium" / "path"
SHELL = "chromium-headless-shell"
NAMES = (SHELL, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """A Chromium that starts, or None."""
    unpacked = UNPACKED.read_text().strip() if UNPACKED.exists() else None
    places = [os.environ.get("CHROMIUM"), *map(shutil.which, NAMES), unpacked]
    return next((place for place in places if place and starts(place)), None)


def starts(program: str) -> bool:
    try:
        return (
            subprocess.run([program, "--version"], capture_output=True, timeout=30, check=False).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def install_chromium() -> str | None:
    """Find one, or get one. None is no failure: the browser tests then skip, and say so."""
    if not os.environ.get("CHROMIUM") and not shutil.which(SHELL):
        install_from_debian(SHELL, "fonts-liberation")
    return (
        find_chromium()
        or (install_from_debian("chromium", "fonts-liberation") and find_chromium())
        or (install_from_npm() and find_chromium())
        or None
    )


def install_from_npm() -> bool:
    """The package holds Chromium compressed; its own few lines of JavaScript unpack it."""
    if not shutil.which("npm") or not shutil.which("node"):
        return False
    folder = UNPACKED.parent
    folder.mkdir(parents=True, exist_ok=True)
    install = [
        "npm",
        "install",
        "--prefix",
        str(folder),
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--no-package-lock",
        NPM_PACKAGE,
    ]
    if subprocess.run(install, stdout=subprocess.DEVNULL, check=False).returncode:
        return False
    unpack = "import('@sparticuz/chromium').then(async c => console.log(await c.default.executablePath()))"
    environment = {**os.environ, "TMPDIR": str(folder)}
    answer = subprocess.run(
        ["node", "-e", unpack], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    UNPACKED.write_text(answer.stdout)
    return answer.returncode == 0
