"""Wakes an OpenClaw agent and waits until its turn is over. OPENCLAW_URL is like http://127.0.0.1:18789, OPENCLAW_TOKEN is its hooks.token."""

import json
import os
from urllib.request import Request, urlopen

from _told import subject, told

from postern.workflows import Event, step, workflow


@step(retries=4, wait=5)
def wake(session: str, message: str, key: str) -> str:
    turn = {"message": message, "sessionKey": f"hook:postern:{session}", "sessionMode": "persistent"}
    turn |= {"name": "Postern", "deliver": False, "waitForCompletion": True}
    token = f"Bearer {os.environ['OPENCLAW_TOKEN']}"
    headers = {"Authorization": token, "Content-Type": "application/json", "Idempotency-Key": key}
    request = Request(f"{os.environ['OPENCLAW_URL']}/hooks/agent", json.dumps(turn).encode(), headers)
    with urlopen(request, timeout=1800) as answer:
        return str(json.load(answer)["completion"]["status"])


@workflow(at_once=1)
def openclaw(event: Event) -> None:
    ended = wake(subject(event), told(event), event["invocationId"])
    if ended != "ok":
        raise RuntimeError(f"the agent's turn ended with {ended}")
