"""Wakes a Hermes agent. HERMES_URL is a route's, like http://127.0.0.1:8644/webhooks/postern, HERMES_SECRET is that route's secret."""

import hmac
import json
import os
import time
from urllib.request import Request, urlopen

from _told import subject, told

from postern.workflows import Event, step, workflow


@step(retries=4, wait=5)
def wake(about: str, text: str, key: str) -> str:
    body = json.dumps({"event_type": "postern", "subject": about, "text": text}).encode()
    moment = str(int(time.time()))
    proof = hmac.digest(os.environ["HERMES_SECRET"].encode(), moment.encode() + b"." + body, "sha256").hex()
    headers = {"Content-Type": "application/json", "X-Request-ID": key}
    headers |= {"X-Webhook-Timestamp": moment, "X-Webhook-Signature-V2": proof}
    with urlopen(Request(os.environ["HERMES_URL"], body, headers), timeout=30) as answer:
        return str(json.load(answer)["status"])


@workflow(at_once=1)
def hermes(event: Event) -> None:
    wake(subject(event), told(event), event["invocationId"])
