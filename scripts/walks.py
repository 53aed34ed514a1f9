"""Follows a value through the code and names the files in which it is in hand: how far a reader has to walk.

    .venv/bin/python scripts/walks.py

A call's body from the socket to the answer, a token from its creation to the webhook that is served with it, a workflow's
answer from the engine to the caller. While one request is served, every function that is called or returns is looked at:
its file counts when the value is in one of its locals, at most two steps inside. What it counted is in
docs/decisions/0013-folders-by-topic.md.
"""

import asyncio
import json
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from postern.settings import Settings
from postern.surfaces.console import rehearsal
from postern.wiring.serving import serve

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.waiting import free_port, wait_until  # noqa: E402

SOURCE = ROOT / "src" / "postern"
KEY = "pk_walks_0123456789abcdefghijklmnopqrstuvwxyz"
BODY, TOKEN, ANSWER = (
    "a-body-that-is-unmistakable",
    "a-token-that-is-unmistakable",
    "an-answer-that-is-unmistakable",
)
WORKFLOW = f'''
from postern.workflows import respond, workflow

@workflow
def walks(event):
    respond("{ANSWER}")
'''
WANTED = {"a call's body": 15, "a token": 20, "a synchronous answer": 14}


class Walk:
    """Which files a value is seen in, while it is looked for."""

    def __init__(self) -> None:
        self._wanted: bytes | None = None
        self._files: dict[str, None] = {}

    def look(self, frame: FrameType, event: str, returned: Any) -> None:
        if self._wanted is None or event not in ("call", "return"):
            return
        file = frame.f_code.co_filename
        if not file.startswith(str(SOURCE)) or file in self._files:
            return
        if any(_holds(one, self._wanted, 2) for one in (*frame.f_locals.values(), returned)):
            self._files[file] = None

    def of(self, wanted: str, ask: Any) -> list[str]:
        """Returns the files that held the value, in the order in which it came to them."""
        self._files, self._wanted = {}, wanted.encode()
        try:
            ask()
        finally:
            self._wanted = None
        return [str(Path(file).relative_to(SOURCE)) for file in self._files]


def _holds(value: Any, wanted: bytes, depth: int) -> bool:
    if isinstance(value, bytes | bytearray):
        return wanted in value
    if isinstance(value, str):
        return wanted.decode() in value
    return depth > 0 and any(_holds(one, wanted, depth - 1) for one in _parts(value))


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from list(value.values())[:50]
    elif isinstance(value, list | tuple | set | frozenset):
        yield from list(value)[:50]
    elif type(value).__module__.startswith("postern."):
        names = {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())}
        for name in {*getattr(value, "__dict__", {}), *getattr(value, "__struct_fields__", ()), *names}:
            yield getattr(value, name, None)


def request(url: str, body: Any, **headers: str) -> Any:
    sent = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(sent, timeout=60) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError as error:
        text = error.read().decode()
    return json.loads(text) if text.startswith("{") else text


def walked(walk: Walk, url: str, found: dict[str, list[str]]) -> None:
    """Makes the calls from outside, in a thread that is not traced."""
    wait_until(lambda: urllib.request.urlopen(f"{url}/readyz", timeout=5).read(), what="the gateway is up")
    api = f"{url}/api/v1/webhooks"
    admin = {"Authorization": f"Bearer {KEY}"}

    def made(**settings: Any) -> Any:
        return request(api, {"name": "Walks", **settings}, **admin)

    guarded: dict[str, Any] = {"authentication": {"method": "token", "token": TOKEN}}

    def create() -> None:
        guarded.update(made(**guarded))

    found["a token"] = walk.of(TOKEN, create)
    open_to_all = made(authentication={"method": "none"})
    waiting = made(authentication={"method": "none"}, synchronousResponse={"enabled": True})
    # The first call of all loads what later ones have, and on a busy machine what begins after an answer is met before
    # it: so the shortest walk counts.
    for again in range(10):
        body = walk.of(BODY, lambda: request(open_to_all["url"], {"n": BODY}))
        answers: list[Any] = []
        answer = walk.of(ANSWER, lambda answers=answers: answers.append(request(waiting["url"], {})))
        assert ANSWER in str(answers) or again == 0, answers
        if again:
            found["a call's body"] = min(found.get("a call's body", body), body, key=len)
            found["a synchronous answer"] = min(found.get("a synchronous answer", answer), answer, key=len)


async def served(settings: Settings, walk: Walk, url: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    rehearsal.AFTER = (
        3600.0  # its pages hold none of the values, and each of their functions would be looked at
    )
    threading.setprofile(walk.look)  # threads of the store
    sys.setprofile(walk.look)
    serving = asyncio.create_task(serve(settings))
    asking = asyncio.to_thread(walked, walk, url, found)
    try:
        await asking
    finally:
        sys.setprofile(None)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        workflows = Path(folder) / "workflows"
        workflows.mkdir()
        (workflows / "walks.py").write_text(WORKFLOW)
        port = free_port()
        settings = Settings(
            {
                "POSTERN_DATA_DIR": f"{folder}/data",
                "POSTERN_PORT": str(port),
                "POSTERN_WORKFLOWS": str(workflows),
                "POSTERN_ADMIN_KEY": KEY,
                "POSTERN_ADMIN_PASSWORD": "a password for walks",
                "POSTERN_LOG": "off",
            }
        )
        found = asyncio.run(served(settings, Walk(), f"http://127.0.0.1:{port}"))
    for what, wanted in WANTED.items():
        print(f"{what}: {len(found[what])} files, at most {wanted} are wanted")
        print("\n".join(f"    {file}" for file in found[what]))
    sys.exit(any(len(found[what]) > wanted for what, wanted in WANTED.items()))


if __name__ == "__main__":
    main()
