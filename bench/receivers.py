"""``python -m bench.receivers [node-red|n8n FOLDER] [--away SECONDS] [--kills TIMES]``: Node-RED or n8n from npm behind
``forward: original``. Does a flow see the same request with and without Postern before it? Is anything lost, or out of order,
while it is away under load? n8n is installed before, in FOLDER: its ``package.json`` needs ``"overrides": {"xlsx": "0.18.5"}``,
because n8n asks for that package from elsewhere than npm."""

import argparse
import hmac
import json
import os
import subprocess
import tempfile
import threading
import time
from base64 import b64decode, b64encode
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import unquote

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
SAY_IN_N8N = "={{ encodeURIComponent(JSON.stringify({url: $json.query, headers: Object.entries($json.headers).flat()})) }}"
"""n8n has the bytes in a file of its own, which the flow sends on as they are."""

Start = tuple[list[str], dict[str, str], str]
"""The command that starts a receiver, with which settings, and the path of its flow."""


def node_red(folder: Path, port: int, told: str, _: Path | None) -> Start:
    nodes: list[dict[str, Any]] = [
        {"id": "t", "type": "tab"},
        {"type": "http in", "url": "/hook", "method": "post", "skipBodyParsing": True, "wires": [["say"]]},
        {"id": "say", "type": "function", "func": f"{SAY}; return msg;", "outputs": 1, "wires": [["tell"]]},
        {"id": "tell", "type": "http request", "method": "POST", "url": told, "wires": [["end"]]},
        {"id": "end", "type": "http response", "wires": []},
    ]
    (folder / "flows.json").write_text(json.dumps([{"z": "t", **node} for node in nodes]))
    command = f"node {rooms.installed()} -u {folder} -p {port} -D uiHost=127.0.0.1 flows.json"
    return command.split(), {}, "/hook"


def n8n(folder: Path, port: int, told: str, installed: Path | None) -> Start:
    hook = {"httpMethod": "POST", "path": "hook", "responseMode": "lastNode", "options": {"rawBody": True}}
    tell = {
        "method": "POST",
        "url": told,
        "sendBody": True,
        "contentType": "binaryData",
        "inputDataFieldName": "data",
    }
    said = {"x-seen": SAY_IN_N8N, "content-type": "application/octet-stream"}
    named = [{"name": name, "value": value} for name, value in said.items()]
    tell |= {"sendHeaders": True, "headerParameters": {"parameters": named}}
    nodes: list[dict[str, Any]] = [
        {
            "id": name,
            "name": name,
            "type": f"n8n-nodes-base.{kind}",
            "typeVersion": version,
            "position": [0, 0],
        }
        | {"parameters": given, "webhookId": "hook"}
        for name, kind, version, given in (("Hook", "webhook", 2, hook), ("Tell", "httpRequest", 4.2, tell))
    ]
    after = {"Hook": {"main": [[{"node": "Tell", "type": "main", "index": 0}]]}}
    flow = {
        "id": "hook",
        "name": "hook",
        "active": False,
        "nodes": nodes,
        "connections": after,
        "settings": {},
    }
    (folder / "flow.json").write_text(json.dumps(flow))
    settings = {"N8N_PORT": str(port), "N8N_USER_FOLDER": str(folder), "N8N_LISTEN_ADDRESS": "127.0.0.1"}
    settings |= {"N8N_DIAGNOSTICS_ENABLED": "false"}
    command = str((installed or Path()) / "node_modules/.bin/n8n")
    for words in (["import:workflow", f"--input={folder / 'flow.json'}"], ["publish:workflow", "--id=hook"]):
        subprocess.run([command, *words], env=os.environ | settings, check=True, stdout=subprocess.DEVNULL)
    return [command, "start"], settings, "/webhook/hook"


RECEIVERS = {"node-red": node_red, "n8n": n8n}


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


def measure(folder: Path, name: str, installed: Path | None, away: float, kills: int) -> str:
    seen: list[dict[str, Any]] = []

    def record(asked: rooms.Asked) -> rooms.Answer:
        if told := asked.headers.get("x-seen"):
            seen.append({**json.loads(unquote(told)), "body": b64encode(asked.body).decode()})
        else:
            seen.append(json.loads(asked.body))
        return 200, "text/plain", b""

    with ExitStack() as stack:
        port = rooms.free_port()
        there = stack.enter_context(rooms.serving(record))
        command, settings, path = RECEIVERS[name](folder, port, there, installed)
        direct = f"http://127.0.0.1:{port}{path}"

        def start() -> "subprocess.Popen[bytes]":
            process = subprocess.Popen(command, env=os.environ | settings, stdout=subprocess.DEVNULL)
            stack.callback(process.kill)
            # Its own 200 while it starts is no proof: a call must have come out of its flow.
            before = len(seen)
            wait_until(
                lambda: send(direct, b"{}") and len(seen) > before,
                300,
                what=f"{name} to serve its flow",
                every=1,
            )
            return process

        def kill_it() -> None:
            running = process
            for _ in range(kills):
                time.sleep(10)
                running.kill()
                running.wait()
                time.sleep(away)
                running = start()

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
            assert b64decode(found[0]["body"]) == body and len(found[0]["headers"]) > 5
            lines.append(f"- {what}: {'the same' if found[0] == found[1] else f'NOT THE SAME: {found}'}")
        seen.clear()
        accepted, began, back = 0, time.monotonic(), threading.Thread(target=kill_it)
        back.start()
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
            f"- {kills} times away for {away:g} s, of {last - began:.0f} s, {RATE:g} calls a second, one at a time for each of {CUSTOMERS} customers: "
            f"{accepted:,} accepted, {accepted - delivered} LOST, {sum(map(len, came.values())) - delivered} sent again, "
            f"{wrong} customers out of order; the last was there {time.monotonic() - last:.0f} s after the last call"
        )
        return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.receivers", description=__doc__)
    parser.add_argument("name", nargs="?", choices=RECEIVERS, default="node-red")
    parser.add_argument("installed", nargs="?", type=Path)
    parser.add_argument("--away", type=float, default=600.0)
    parser.add_argument("--kills", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = measure(Path(folder), asked.name, asked.installed, asked.away, asked.kills)
    rooms.keep(f"{asked.name} behind `forward: original`", f"{asked.kills} times {asked.away:g} s away", text)
