"""A shop's day, for the pictures in the docs: webhooks of every kind, and calls that the real use cases judge
and record.

Calls are handed to the use cases with the clock set back, so that charts and histories have a past.
"""

import asyncio
import base64
import hashlib
import hmac
import json
import math
import random
import sys
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import uuid_utils

from postern import identity
from postern.core.access.accounts import Actor
from postern.core.admit import admit, admit_head
from postern.core.answer import CallerAnswer
from postern.core.calls.call import Call
from postern.settings import Settings
from postern.usecases.access import accounts
from postern.usecases.calls.receive import CallerState, receive
from postern.usecases.history import findable
from postern.usecases.operations.example import example_curl
from postern.usecases.runtime.gateway import Gateway
from postern.usecases.shapes import validated
from postern.usecases.webhooks import listing, webhooks
from postern.usecases.webhooks.requests import WebhookRequest
from postern.wiring.gateway import opened
from postern.workflows.example import EXAMPLE

ACTOR = Actor("sample data", "admin")
SHOPIFY, STRIPE = "shpss_3f9c1b7e5d2a48f0", "whsec_kR7mQz2vXw9LpT4nYb6cJd8f"
ORDER = {
    "id": 820982911946154508,
    "order_number": 1234,
    "email": "jon@example.com",
    "total_price": "403.00",
    "currency": "EUR",
    "customer": {
        "id": 115310627314723954,
        "first_name": "Jon",
        "email": "jon@example.com",
        "tags": ["vip", "newsletter"],
    },
    "line_items": [
        {"sku": "TEA-250", "title": "Green tea", "quantity": 2, "price": "199.00"},
        {"sku": "CUP-1", "title": "Porcelain cup", "quantity": 1, "price": "5.00"},
    ],
    "test": False,
    "note": None,
}

WEBHOOKS: dict[str, dict[str, Any]] = {
    "Shopify orders": {
        "authentication": {"method": "hmac", "provider": "shopify", "secret": SHOPIFY},
        "fieldMapping": {
            "fieldOne": "order_number",
            "fieldTwo": "customer.email",
            "fieldThree": "line_items[0].sku",
        },
        "duplicateProtection": {"enabled": True},
    },
    "Stripe payments": {
        "authentication": {"method": "hmac", "provider": "stripe", "secret": STRIPE},
        "fieldMapping": {"fieldOne": "data.object.id"},
        "duplicateProtection": {"enabled": True},
    },
    "Newsletter form": {
        "authentication": {"method": "token", "token": {"generate": True}},
        "cors": {"enabled": True, "origins": ["https://shop.example.com"]},
        "fieldMapping": {"fieldOne": "email"},
    },
    "Warehouse export": {
        "authentication": {
            "method": "token",
            "placement": "basic",
            "username": "warehouse",
            "token": "correct horse battery",
            "secondToken": "staple",
        },
        "ipAllowlist": ["203.0.113.0/24"],
    },
    "Price list (test)": {"authentication": {"method": "none"}, "enabled": False},
}
DELETED = "Last year's importer"
WORKFLOWS = '''"""Orders go to the ERP, payments into the books."""

from postern.workflows import Event, step, workflow


@step(retries=0)
def to_erp(number: int) -> None:
    if 1300 < number < 1325:
        raise RuntimeError(f"ERP said 503 for order {number}")


@workflow(webhook_id="{Shopify orders}")
def new_order(event: Event) -> None:
    to_erp(int(event["fieldOne"]))


@step()
def book(payment: str) -> None: ...


@workflow(webhook_id="{Stripe payments}")
def payment_received(event: Event) -> None:
    book(event["fieldOne"])
'''
"""Puts the ids of webhooks in place of their names."""


async def fill(settings: Settings, calls: int = 420) -> None:
    async with opened(settings) as gateway:
        await accounts.ensure_admin(gateway, settings.admin_password)
        await example_curl(gateway)
        chance = random.Random(7)
        for name, settings_of in reversed(WEBHOOKS.items()):
            await webhooks.create(gateway, ACTOR, validated(WebhookRequest, {"name": name, **settings_of}))
        gone = {"name": DELETED, "authentication": {"method": "none"}}
        made = await webhooks.create(gateway, ACTOR, validated(WebhookRequest, gone))
        await webhooks.remove(gateway, ACTOR, made.id)
        ids = {webhook.name: webhook.id for webhook in (await listing.listing(gateway, ACTOR)).items}
        write_workflows(settings.workflows, ids)
        now = time.time()
        moments = sorted(now - 60 - _spread(chance) for _ in range(calls))
        for number, moment in enumerate(moments):
            await _one(gateway, ids, chance, number, moment)
        for number in range(5):
            await _one(
                gateway, ids, chance, 2 * calls + number, now - 200 + 20 * number, "Warehouse export", "other"
            )
        await _one(gateway, ids, chance, calls, now - 20, "Shopify orders", "other")
        await _one(gateway, ids, chance, calls + 1, now - 8, "Shopify orders", "good")
        await _one(gateway, ids, chance, calls + 2, now - 5, "Stripe payments", "reformatted")
        gateway.clock = identity.clock = time.time
        while await findable.step(gateway):
            pass


def write_workflows(folder: Path, ids: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    source = WORKFLOWS
    for name, webhook_id in ids.items():
        source = source.replace(f"{{{name}}}", webhook_id)
    (folder / "shop.py").write_text(source)
    (folder / EXAMPLE.name).write_text(EXAMPLE.read_text())


def _spread(chance: random.Random) -> float:
    """Seconds ago, within a day that has a night."""
    while True:
        ago = chance.random() * 86_000
        if chance.random() < 0.55 + 0.45 * math.sin((time.time() - ago) / 86_400 * 2 * math.pi):
            return ago


async def _one(
    gateway: Gateway,
    ids: dict[str, str],
    chance: random.Random,
    number: int,
    moment: float,
    name: str = "",
    kind: str = "",
) -> None:
    name = (
        name
        or chance.choices(
            ["Shopify orders", "Stripe payments", "Newsletter form", "Warehouse export"], [10, 6, 3, 2]
        )[0]
    )
    kind = kind or chance.choices(["good", "again", "other", "bare"], [88, 4, 6, 2])[0]
    webhook = gateway.runtime.directory.by_id(ids[name])
    assert webhook is not None
    headers, body = _signed(name, kind, number, moment)
    call = Call(
        "POST",
        f"/webhook/{webhook.addresses[0]}".encode(),
        b"",
        headers,
        body,
        f"203.0.113.{chance.randint(2, 90)}",
        moment,
        gateway.site.base_url,
    )
    took = chance.lognormvariate(1.1, 0.55) / 1000
    gateway.clock = lambda: moment + took
    identity.clock = lambda: moment
    # An id has its time, too: that is what a list is filtered by.
    uuid_utils.uuid7 = lambda: UUID(  # type: ignore[assignment, misc]
        f"{int(moment * 1000):012x}7{chance.getrandbits(12):03x}8{chance.getrandbits(60):015x}"
    )
    verdict = admit_head(webhook, call) or admit(webhook, call, gateway.runtime.limits)
    answered: asyncio.Future[CallerAnswer] = asyncio.get_running_loop().create_future()

    def on_answer(answer: CallerAnswer) -> CallerState:
        answered.set_result(answer)
        return "there"

    receive(gateway, webhook, call, verdict, on_answer)
    await answered


def _signed(
    name: str, kind: str, number: int, moment: float
) -> tuple[tuple[tuple[bytes, bytes], ...], bytes]:
    content = (b"content-type", b"application/json")
    if name == "Shopify orders":
        body = json.dumps(ORDER | {"id": number - (kind == "again"), "order_number": 1000 + number}).encode()
        key = b"another shop's secret" if kind == "other" else SHOPIFY.encode()
        digest = base64.b64encode(hmac.digest(key, body, hashlib.sha256))
        event = f"9888-{number - (kind == 'again')}".encode()
        signature = () if kind == "bare" else ((b"x-shopify-hmac-sha256", digest),)
        return (
            content,
            (b"user-agent", b"Shopify-Captain-Hook"),
            (b"x-shopify-topic", b"orders/create"),
            (b"x-shopify-event-id", event),
            *signature,
        ), body
    if name == "Stripe payments":
        paid = {
            "id": f"evt_{number}",
            "object": "event",
            "type": "checkout.session.completed",
            "data": {"object": {"id": f"cs_{number}", "amount_total": 4200}},
        }
        body = json.dumps(paid, separators=(",", ":")).encode()
        signed_at = int(moment) - (900 if kind == "other" else 0)
        digest_hex = hmac.digest(STRIPE.encode(), f"{signed_at}.".encode() + body, hashlib.sha256).hex()
        if kind == "reformatted":
            body = json.dumps(paid, indent=1).encode()
        signature = (
            () if kind == "bare" else ((b"stripe-signature", f"t={signed_at},v1={digest_hex}".encode()),)
        )
        return (content, (b"user-agent", b"Stripe/1.0 (+https://stripe.com/docs/webhooks)"), *signature), body
    if name == "Newsletter form":
        return (content, (b"x-api-key", b"guess"), (b"origin", b"https://shop.example.com")), json.dumps(
            {"email": "ada@example.com"}
        ).encode()
    password = {"good": b"staple", "again": b"staple", "other": b"wrong", "bare": b"correct horse battery"}[
        kind
    ]
    basic = b"Basic " + base64.b64encode(b"warehouse:" + password)
    return (content, (b"authorization", basic)), json.dumps(
        {"batch": number, "items": [{"sku": "TEA-250", "stock": 40 + number}]}
    ).encode()


if __name__ == "__main__":
    asyncio.run(fill(Settings(), int(sys.argv[1]) if len(sys.argv) > 1 else 420))
