"""Starts a routine of Claude Code on the web. ROUTINE_URL and ROUTINE_TOKEN are those of its API trigger."""

import json
import os
from urllib.request import Request, urlopen

from _told import told

from postern.workflows import Event, step, workflow


@step
def fire(text: str) -> str:
    headers = {"Authorization": f"Bearer {os.environ['ROUTINE_TOKEN']}", "Content-Type": "application/json"}
    headers |= {
        "anthropic-beta": "experimental-cc-routine-2026-04-01",
        "anthropic-version": "2023-06-01",
    }
    request = Request(os.environ["ROUTINE_URL"], json.dumps({"text": text}).encode(), headers)
    with urlopen(request, timeout=30) as answer:
        return str(json.load(answer)["claude_code_session_url"])


@workflow(at_once=1)
def routine(event: Event) -> None:
    print(f"{event['invocationId']}: {fire(told(event))}")
