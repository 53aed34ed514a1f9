"""What callers, API clients and scripts meet, compared with another checkout: the OpenAPI document, the MCP
tools, the commands' help, exit codes and ``--json``.

    .venv/bin/python scripts/contract.py --against ../postern-before

Both checkouts are asked from outside, each with the environment it was set up with. Every difference is one line;
whether it is meant is for its author to say in the commit. What no client can notice is no difference: the order of
alternatives, generated titles, where a line is broken.
"""

import argparse
import difflib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KEY = "pk_contract_0123456789abcdefghijklmnopqrstuvwxyz"
STARTS_WITHIN = 60.0

# Each is run in one folder, in this order. What they print as JSON is compared without its ids and times.
COMMANDS = [
    "nonsense",
    "webhooks create",
    "webhooks create Orders --auth none --json",
    "webhooks create Signed --auth nothing",
    "webhooks list --json",
    "webhooks show wh_none --json",
    "history list --json",
    "history list --status lost",
    "replays list --json",
    "keys list --json",
    "users list --json",
    "audit --json",
    "providers --json",
    "settings --json",
    "config export",
]
CHANGING = re.compile(
    r"(wh|inv|aud|key|usr|ses|pk)_[0-9A-Za-z]{8,}|\d{4}-\d\d-\d\dT[\d:.]+Z|127\.0\.0\.1:\d+|/webhook/\w+|/tmp/\S+?(?=[\"'/\s]|$)"
)


def met(checkout: Path) -> dict[str, Any]:
    """Collects everything that is compared, from one checkout."""
    with tempfile.TemporaryDirectory() as folder:
        contract: dict[str, Any] = {"openapi": {}, "mcp": {}, "commands": {}}
        contract["help"] = sections(checkout / "docs" / "reference" / "commands.md")
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("POSTERN_")},
            "POSTERN_DATA_DIR": f"{folder}/data",
            "POSTERN_PORT": str(port),
            "POSTERN_ADMIN_KEY": KEY,
            "POSTERN_ENGINE": "none",
            "POSTERN_ADMIN_PASSWORD": "a password for comparing",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }
        postern = [str(checkout / ".venv" / "bin" / "python"), "-m", "postern"]

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [*postern, *words], capture_output=True, text=True, cwd=folder, env=environment, check=False
            )

        for line in COMMANDS:
            done = run(*line.split())
            printed = CHANGING.sub("…", done.stdout.replace(f'"{port}"', '"…"'))
            shown = json.loads(printed) if printed.startswith(("{", "[")) else printed
            contract["commands"][line] = {"exit code": done.returncode, "printed": shown}
        with (Path(folder) / "log").open("w") as log:
            served = subprocess.Popen(
                [*postern, "serve"], cwd=folder, env=environment, stdout=log, stderr=log
            )
        try:
            url = f"http://127.0.0.1:{port}"
            until = time.monotonic() + STARTS_WITHIN
            while True:
                try:
                    contract["openapi"] = asked(f"{url}/api/v1/openapi.json")
                    break
                except OSError:
                    if served.poll() is not None or time.monotonic() > until:
                        raise
                    time.sleep(0.1)
            listed = asked(f"{url}/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
            contract["mcp"] = {tool["name"]: tool for tool in listed["result"]["tools"]}
        finally:
            served.terminate()
            served.wait()
        return {part: one if part == "help" else meaning(one) for part, one in contract.items()}


def sections(page: Path) -> dict[str, str]:
    """The commands' help as the reference has it: a test of each checkout says that it is the program's."""
    parts = re.split(r"^##+ (.*)$", page.read_text(), flags=re.MULTILINE)
    # A line that begins with a space or a bar is one of an example or a table; the others are one paragraph.
    texts = [re.sub(r"(?<=[^\n|])\n(?=[^\n|])", " ", part) for part in parts[2::2]]
    return dict(
        zip(
            parts[1::2],
            ("\n".join(" ".join(line.split()) for line in text.splitlines()) for text in texts),
            strict=True,
        )
    )


def meaning(value: Any) -> Any:
    """Reduces a description to what a client can notice: two ways of saying the same become equal."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list):
        items = [meaning(one) for one in value]
        # Parameters, settings and senders are found by their name, not by their place.
        for names in (("in", "name"), ("variable",)):
            if items and all(isinstance(one, dict) and set(names) <= set(one) for one in items):
                return {" ".join(str(one[name]) for name in names): one for one in items}
        return items
    if not isinstance(value, dict):
        return value
    found = {name: meaning(one) for name, one in value.items()}
    if isinstance(found.get("title"), str):
        del found["title"]
    if "const" in found:
        found["enum"] = [found.pop("const")]
    if isinstance(found.get("enum"), list):
        found["enum"] = sorted(found["enum"], key=str)
        found.pop("type", None)
    for name in ("required", "anyOf", "type"):
        if isinstance(found.get(name), list):
            found[name] = sorted(found[name], key=lambda one: json.dumps(one, sort_keys=True))
    schema = found.get("schema")
    if isinstance(schema, dict) and schema.get("description") == found.get("description"):
        schema.pop("description", None)  # of a parameter, written twice
    if found.get("additionalProperties") is True:
        del found["additionalProperties"]
    return found


def asked(url: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    headers["Accept"] = "application/json, text/event-stream"
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
        return json.loads(answer.read())


def differences(before: Any, after: Any, place: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*before, *(name for name in after if name not in before)]:
            here = f"{place} > {name}" if place else name
            if name not in after:
                yield f"- {here}"
            elif name not in before:
                yield f"+ {here}"
            else:
                yield from differences(before[name], after[name], here)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (was, is_now) in enumerate(zip(before, after, strict=True)):
            yield from differences(was, is_now, f"{place}[{number}]")
    elif isinstance(before, str) and isinstance(after, str) and "\n" in before and before != after:
        changed = difflib.ndiff(before.splitlines(), after.splitlines())
        yield from (f"{place}: {line}" for line in changed if line[0] in "+-" and line[1:].strip())
    elif before != after:
        yield f"~ {place}: {short(before)} -> {short(after)}"


def short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare what others meet with another checkout.")
    parser.add_argument("--against", type=Path, required=True, help="a checkout that is set up (make check)")
    found = list(differences(met(parser.parse_args().against.resolve()), met(ROOT)))
    print("\n".join([*found, f"{len(found)} differences"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
