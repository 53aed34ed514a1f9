"""``python -m bench.receivers [seconds]``: Node-RED from npm behind ``forward: original``. Does a flow see the same request
with and without Postern before it? Is anything lost, or out of order, while it is away under load?"""

import hmac
import json
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64decode
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench import rooms
from bench.rooms import admin_of, call, made, wait_until

SECRET = "the secret of the sender and of its webhook"
LEFT_OUT = {"host", "connection", "accept-encoding", "idempotency-key", "traceparent"}
QUERY = "?b=1&a=%20x+y&b=2&empty=&%C3%A9=%e9"
BODIES = {
    "JSON": (b'{ "n": 1.0,\r\n "name": "\\u00e9\xc3\xa9", "n": 2 }\n', "application/json; charset=utf-8"),
    "a form": (b"customer=ada+b&n=1&n=2&empty=&x=%C3%A9", "application/x-www-form-urlencoded"),
    "200 kB": (b'{"filler": "%b"}' % (b"x" * 200_000), "application/json"),
}
CUSTOMERS, RATE = 20, 20.0
SAY = "msg.payload = {method: msg.req.method, url: msg.req.url, headers: msg.req.rawHeaders, body: msg.payload.toString('base64')}"


def flow(told: str) -> list[dict[str, Any]]:
    return [
        {"id": "t", "type": "tab"},
        {"type": "http in", "url": "/hook", "method": "post", "skipBodyParsing": True, "wires": [["say"]]},
        {"id": "say", "type": "function", "func": f"{SAY}; return msg;", "outputs": 1, "wires": [["tell"]]},
        {"id": "tell", "type": "http request", "method": "POST", "url": told, "wires": [["end"]]},
        {"id": "end", "type": "http response", "wires": []},
    ]


def send(url: str, body: bytes, kind: str = "application/json") -> int:
    proof = hmac.digest(SECRET.encode(), body, "sha256").hex()
    ours = {
        "X_Hub_Signature_256": f"sha256={proof}",
        "X_GitHub_Event": "push",
        "User_Agent": "GitHub-Hookshot/1",
    }
    return call(
        url + QUERY, body, Content_Type=kind, Accept="*/*", X_Empty="", X_Spaces="a  b", **ours
    ).status


def request_of(told: dict[str, Any]) -> dict[str, Any]:
    """Without what belongs to one connection, and what Postern adds."""
    given = [(name.lower(), value) for name, value in zip(*[iter(told["headers"])] * 2, strict=True)]
    kept = [one for one in given if one[0] not in LEFT_OUT and not one[0].startswith("webhook-")]
    return {**told, "headers": sorted(kept)}


def waiting(program: rooms.Program) -> bool:
    return bool(admin_of(program).get("invocations?status=accepted&limit=1").json["items"])


def measure(folder: Path, away: float) -> str:
    seen: list[dict[str, Any]] = []

    def record(asked: rooms.Asked) -> rooms.Answer:
        seen.append(json.loads(asked.body))
        return 200, "text/plain", b""

    with ExitStack() as stack:
        port, script = rooms.free_port(), rooms.installed()
        direct = f"http://127.0.0.1:{port}/hook"
        flows = [{"z": "t", **node} for node in flow(stack.enter_context(rooms.serving(record)))]
        (folder / "flows.json").write_text(json.dumps(flows))
        command = f"node {script} -u {folder} -p {port} -D uiHost=127.0.0.1 flows.json".split()

        def start() -> "subprocess.Popen[bytes]":
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            stack.callback(process.kill)
            wait_until(lambda: send(direct, b"{}") == 200, what="Node-RED to serve its flow", every=1)
            return process

        process = start()
        near = {"POSTERN_ENGINE": "none", "POSTERN_OUTBOUND_ALLOWED": "127.0.0.1"}
        program = stack.enter_context(rooms.Program(folder / "postern", near))
        proof = {"method": "hmac", "provider": "github", "secret": SECRET}
        given = {"rateLimit": {"callsPerSecond": 1_000, "burst": 1_000}, "turns": {"by": "customer"}}
        target = {"url": direct, "forward": "original"}
        url = made(program, authentication=proof, target=target, **given)["url"]
        wait_until(lambda: send(url, b"{}") == 200)
        wait_until(lambda: not waiting(program), what="its first call to have gone")
        lines = []
        for what, (body, kind) in BODIES.items():
            found = []
            for to in (direct, url):
                seen.clear()
                assert send(to, body, kind) == 200
                found.append(request_of(wait_until(lambda: seen, what="the flow to have it")[0]))
            assert b64decode(found[0]["body"]) == body and len(found[0]["headers"]) > 7
            lines.append(f"- {what}: {'the same' if found[0] == found[1] else f'NOT THE SAME: {found}'}")
        seen.clear()
        accepted, began, back = 0, time.monotonic(), threading.Timer(10 + away, start)
        for later in (threading.Timer(10, process.kill), back):
            later.start()
        while back.is_alive() or time.monotonic() < began + away + 20:
            assert send(url, json.dumps({"customer": accepted % CUSTOMERS, "n": accepted}).encode()) == 200
            accepted += 1
            time.sleep(max(0.0, began + accepted / RATE - time.monotonic()))
        last = time.monotonic()
        wait_until(lambda: not waiting(program), 1800, what="all to be delivered", every=0.5)
        came: dict[int, list[int]] = defaultdict(list)
        for one in (json.loads(b64decode(told["body"])) for told in seen):
            if one:  # the first call after the start says only that it is there
                came[one["customer"]].append(one["n"])
        first = [list(dict.fromkeys(numbers)) for numbers in came.values()]
        delivered, wrong = sum(map(len, first)), sum(numbers != sorted(numbers) for numbers in first)
        lines.append(
            f"- away for {away:g} s of {last - began:.0f} s, {RATE:g} calls a second, one at a time for each of {CUSTOMERS} customers: "
            f"{accepted:,} accepted, {accepted - delivered} LOST, {sum(map(len, came.values())) - delivered} sent again, "
            f"{wrong} customers out of order; the last was there {time.monotonic() - last:.0f} s after the last call"
        )
        return "\n".join(lines)


if __name__ == "__main__":
    away = float(sys.argv[1]) if sys.argv[1:] else 600.0
    with tempfile.TemporaryDirectory() as folder:
        rooms.keep("Node-RED behind `forward: original`", f"{away:g} s away", measure(Path(folder), away))
