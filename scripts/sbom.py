"""Lists the components of an installation with every extra, or of the image, as CycloneDX: the locked Python packages
and the console's assets."""

import base64
import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from postern import __version__

ROOT = Path(__file__).resolve().parent.parent
NAME = "postern-gateway"

_LOCKED = re.compile(
    r"^([\w.-]+)==([^\s;]+)(?: ; (.*?))? \\$\n((?:    --hash=sha256:\w+(?: \\)?\n?)+)", re.MULTILINE
)


def sbom(lock: str, npm_lock: dict[str, Any], version: str) -> dict[str, Any]:
    components = [_python_package(*found) for found in _LOCKED.findall(lock)]
    components += [
        _npm_package(path.removeprefix("node_modules/"), package)
        for path, package in npm_lock["packages"].items()
        if path
    ]
    own = f"pkg:pypi/{NAME}@{version}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": NAME,
                "version": version,
                "purl": own,
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [one["bom-ref"] for one in components]}],
    }


def _python_package(name: str, version: str, only_where: str, hashes: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{version}"
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    }
    if licence := _licence(name):
        component["licenses"] = [{"license": {"name": licence}}]
    component["properties"] = [
        {"name": "sha256 of one of its files", "value": digest}
        for digest in re.findall(r"sha256:(\w+)", hashes)
    ]
    if only_where:
        component["scope"] = "optional"
    return component


def _licence(name: str) -> str | None:
    """Returns the licence that the installed package names; not every platform's packages are installed here."""
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    of_classifiers = [
        one.rpartition(" :: ")[2] for one in about.get_all("Classifier") or [] if one.startswith("License ::")
    ]
    expression, own_words = (
        about[name].strip() if name in about else "" for name in ("License-Expression", "License")
    )
    # An old package may put the whole text of its licence where the name belongs.
    return expression or ", ".join(of_classifiers) or (own_words if len(own_words) < 80 else "") or None


def _npm_package(name: str, package: dict[str, Any]) -> dict[str, Any]:
    purl = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
    kind, _, digest = package["integrity"].partition("-")
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": package["version"],
        "purl": purl,
        "hashes": [
            {"alg": kind.upper().replace("SHA", "SHA-"), "content": base64.b64decode(digest).hex()},
        ],
    }
    if "license" in package:
        component["licenses"] = [{"license": {"name": package["license"]}}]
    return component


def written() -> str:
    npm_lock = json.loads((ROOT / "package-lock.json").read_text())
    document = sbom((ROOT / "requirements.lock").read_text(), npm_lock, __version__)
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(written())
