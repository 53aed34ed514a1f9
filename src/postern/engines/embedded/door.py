"""The response action's one POST, to the gateway's door. No proxy, no redirect: it is the gateway or
nobody."""

import http.client
import json
import logging
import time
from typing import Any
from urllib.parse import urlsplit

from postern.core.deliveries.delivery import ResponseSlot

log = logging.getLogger("postern.engine")


class AnswerRefused(Exception):
    """The gateway will not send this answer to anybody: what is wrong with it."""


def knock(slot: ResponseSlot, answer: dict[str, Any]) -> bool:
    """Hand the answer over. True when it was the first; False when another was faster or the caller is
    gone."""
    body = json.dumps(answer).encode()
    wait = 0.1
    while True:
        try:
            status, text = _post(slot, body)
        except (OSError, http.client.HTTPException) as error:
            trouble = str(error) or type(error).__name__
        else:
            if status in (200, 201, 202, 204):
                return True
            if status in (404, 410):
                return False
            if status < 500 and status != 429:
                raise AnswerRefused(f"the gateway did not take the answer ({status}): {text}")
            trouble = f"status {status}"
        # Once more is pointless when nobody waits any longer; before that the gateway may be restarting.
        if time.time() + wait >= slot.deadline:
            log.warning("the answer could not be handed over: %s", trouble)
            return False
        time.sleep(wait)
        wait = min(wait * 2, 2.0)


def _post(slot: ResponseSlot, body: bytes) -> tuple[int, str]:
    url = urlsplit(slot.url)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=10.0)
    try:
        headers = {"Authorization": f"Bearer {slot.token}", "Content-Type": "application/json"}
        connection.request("POST", url.path + (f"?{url.query}" if url.query else ""), body, headers)
        reply = connection.getresponse()
        return reply.status, reply.read(2000).decode("utf-8", "replace")
    finally:
        connection.close()
