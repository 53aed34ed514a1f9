"""Idempotency keys: a creation that a client sends again makes nothing twice, and gets the first answer."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256

import msgspec

from postern.core.access.accounts import Actor
from postern.core.history.invocation import StoreUnavailable
from postern.core.problems import Refused
from postern.observe.changes import may_have_changed
from postern.usecases.runtime.gateway import Gateway

ANSWER_KEPT_FOR = 24 * 3600.0
LEASE = 60.0
"""Seconds after which a key is free again if the process of its first request died."""
LONGEST_WAIT = 10.0
CHECK_ANSWER_EVERY = 0.1

KeptAnswer = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body."""

_kept_answer = msgspec.json.Decoder(KeptAnswer)


async def once(
    gateway: Gateway, actor: Actor, key: str, request: bytes, work: Callable[[], Awaitable[KeptAnswer]]
) -> tuple[KeptAnswer, bool]:
    """The answer of the work, and whether an earlier request got it. After a refusal the key is free again."""
    store, owner, digest = gateway.store.idempotency, actor.owner, sha256(request).digest()
    waited = 0.0
    while True:
        now = gateway.clock()
        seen = await store.begin(owner, key, digest, now, now + LEASE)
        if seen is None:
            may_have_changed.set(False)  # the key alone was written
            break
        if not hmac.compare_digest(seen.request, digest):
            raise Refused("idempotency_mismatch")
        if seen.answer is not None:
            return _kept_answer.decode(seen.answer), True
        if waited >= LONGEST_WAIT:
            raise Refused(
                "conflict",
                "The first request with this Idempotency-Key is still at work, or was broken off; try again in a minute.",
            )
        await asyncio.sleep(CHECK_ANSWER_EVERY)
        waited += CHECK_ANSWER_EVERY
    try:
        answered = await work()
    except BaseException:
        changed = may_have_changed.get()
        await store.forget(owner, key)
        may_have_changed.set(changed)
        raise
    if answered[0] >= 400:
        await store.forget(owner, key)
    else:
        with suppress(StoreUnavailable):  # what was done is told, also where that cannot be kept
            await store.finish(owner, key, msgspec.json.encode(answered), gateway.clock() + ANSWER_KEPT_FOR)
    return answered, False
