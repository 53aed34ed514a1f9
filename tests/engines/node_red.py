"""A real Node-RED from npm, with the flows that the tests ask for."""

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engines.npm import from_npm
from support.waiting import PATIENCE, free_port, wait_until

EXAMPLE = Path(__file__).parents[2] / "examples" / "node_red_flow.json"

REMEMBER = """
const seen = flow.get('seen') || {};
const key = msg.req.headers['idempotency-key'];
if (msg.payload.fieldOne === 'refuse') { msg.statusCode = 400; msg.payload = 'no such workflow'; return [msg, null]; }
if (seen[key]) { msg.statusCode = 409; return [msg, null]; }
seen[key] = msg.payload;
flow.set('seen', seen);
return [null, msg];
"""
ANSWER_INLINE = """
msg.payload = msg.payload.response ? {echo: msg.payload.fieldOne} : {};
return msg;
"""
ANSWER_LATER = """
const slot = msg.payload.response, echo = msg.payload.fieldOne;
const accepted = {req: msg.req, res: msg.res, statusCode: 202, payload: ''};
if (!slot) { return [accepted, null]; }
return [accepted, {
    url: slot.url,
    headers: {'Authorization': 'Bearer ' + slot.token, 'Content-Type': 'application/json'},
    payload: {status: 200, headers: {}, body: {echo: echo}},
}];
"""


def flow(path: str) -> list[dict[str, Any]]:
    """One tab: an *http in* node, a memory of deliveries, a switch on the webhook's id, and an answer, at
    once or later."""

    def node(name: str, kind: str, *wires: list[str], **more: Any) -> dict[str, Any]:
        return {
            "id": f"{path}-{name}",
            "z": path,
            "type": kind,
            "wires": [[f"{path}-{to}" for to in wire] for wire in wires],
            "x": 0,
            "y": 0,
            **more,
        }

    answer = (
        node("answer", "function", ["reply"], func=ANSWER_INLINE, outputs=1)
        if path == "inline"
        else node("answer", "function", ["reply"], ["post"], func=ANSWER_LATER, outputs=2)
    )
    rules = [{"t": "eq", "v": "wh_1", "vt": "str"}, {"t": "else"}]
    return [
        {"id": path, "type": "tab", "label": path},
        node("in", "http in", ["remember"], url=f"/{path}", method="post"),
        node("remember", "function", ["reply"], ["which"], func=REMEMBER, outputs=2),
        node(
            "which",
            "switch",
            ["answer"],
            ["reply"],
            property="payload.webhookId",
            propertyType="msg",
            rules=rules,
            checkall="false",
            outputs=2,
        ),
        answer,
        node("reply", "http response", statusCode="", headers={}),
        node("post", "http request", [], method="POST", ret="txt", url="", paytoqs="ignore"),
        node("ask", "http in", ["ran"], url=f"/{path}/ran", method="get"),
        node(
            "ran",
            "function",
            ["reply"],
            func="msg.payload = Object.values(flow.get('seen') || {}); return msg;",
            outputs=1,
        ),
    ]


def installed() -> Path:
    """Node-RED's start script. Version 5 wants Node.js 22.9; an older Node.js gets version 4."""
    printed = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = printed.strip().lstrip("v").split(".")[:2]
    version = "5" if (int(major), int(minor)) >= (22, 9) else "4"
    return from_npm("node-red", version) / "node_modules" / "node-red" / "red.js"


@contextmanager
def node_red(folder: Path) -> Iterator[int]:
    """The port of a running Node-RED. It keeps everything it writes in ``folder``."""
    script = installed()
    port = free_port()
    settings = {
        "uiHost": "127.0.0.1",
        "uiPort": port,
        "flowFile": "flows.json",
        "httpAdminRoot": False,
        "credentialSecret": False,
        "telemetry": {"enabled": False, "updateNotification": False},
        "externalModules": {"autoInstall": False},
    }
    (folder / "settings.js").write_text(f"module.exports = {json.dumps(settings)};")
    example = json.loads(EXAMPLE.read_text().replace("wh_…", "wh_1"))
    (folder / "flows.json").write_text(json.dumps(flow("inline") + flow("later") + example))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["node", str(script), "--userDir", str(folder)], stdout=log, stderr=log, cwd=folder
        )
        try:
            wait_until(
                lambda: _up(port, process),
                what=lambda: "Node-RED; its log: " + (folder / "log").read_text()[-2000:],
            )
            yield port
        finally:
            process.terminate()
            process.wait(PATIENCE)


def _up(port: int, process: "subprocess.Popen[bytes]") -> bool:
    assert process.poll() is None, "Node-RED ended"
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/later/ran", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # one that is forgotten is a warning
        time.sleep(0.05)
        return False
