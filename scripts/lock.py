"""Resolve the dependencies in pyproject.toml and package.json again and write the lock files: names, versions
and hashes, no addresses."""

import shutil
import sys

from install import find_uv, follow_pip_configuration, run

# No index address in the files: whoever installs from them does so from their own index or mirror.
FORM = "--generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header"

follow_pip_configuration()
uv = find_uv() or sys.exit("uv makes the lock files, and it could not be installed")
how = f"pip compile --universal --python-version 3.11 --upgrade --quiet {FORM}"
compile_lock = [uv, *how.split()]
everything = [*compile_lock, "pyproject.toml", "--all-extras"]
run(*everything, "--output-file", "requirements.lock")
everything += ["--group", "dev", "--constraint", "requirements.lock"]
run(*everything, "--output-file", "requirements-dev.lock")

# The tools that build and install, which nothing else needs.
for group in ("build", "uv"):
    run(*compile_lock, "--group", group, "--output-file", f"requirements-{group}.lock")

if shutil.which("npm"):
    update = ("npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund")
    run(*update)
    run(*update, "--omit-lockfile-registry-resolved", "--prefix", "tests/npm")
