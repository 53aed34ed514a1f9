"""Letting in what was turned away: each event starts once, whoever admits and whatever is killed."""

import base64
import hmac
import html
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette

from journeys.cluster import CountingEngine, ask, make_webhook
from journeys.cluster import an_engine as an_engine
from postern import identity
from postern.core.address import Allowlist
from postern.core.watch.channels import read_channels, read_mail_server
from postern.outbound.guard import Guard
from postern.outbound.mail import send_mail
from postern.surfaces.console.routes import console_routes
from postern.surfaces.console.views.webhooks import webhook as webhook_page
from postern.usecases.access import accounts
from postern.usecases.alarms import incidents
from postern.usecases.alarms.judging import AlarmLoop
from postern.usecases.alarms.telling import TellLoop
from stand_in import Received, Reply, stand_in
from support.client import PASSWORD, Client
from support.house import OWNER, a_house
from support.mail import mail_server
from support.plain_http import WITHOUT_TLS
from support.program import Program, run_postern
from support.simulated import OneClock
from support.waiting import wait_until

WRONG, RIGHT = "whk_before_the_rotation_0123456789", "whk_after_the_rotation_9876543210"

DIES_WITHIN = """
import os, signal
from postern.stores.deliveries.emissions import Emissions

admit, begun = Emissions.admit, []

async def dying(self, *given):
    begun.append(given)
    if len(begun) == 50:
        os.kill(os.getpid(), signal.SIGKILL)
    return await admit(self, *given)

Emissions.admit = dying
"""


def at_work(folder: Path, engine: CountingEngine, **more: str) -> Program:
    return Program(
        folder, {"POSTERN_ENGINE": "http", "POSTERN_HTTP_URL": engine.url, "POSTERN_LOG": "off", **more}
    )


def attempts(program: Program, path: str, orders: int, times: int, status: int) -> None:
    """A sender whose token is not the webhook's: it sends each order again, as it hears no 2xx."""
    sender = Client(program.port)
    for _ in range(times):
        for order in range(orders):
            assert sender.post(path, {"order": order}, X_Api_Key=RIGHT).status == status


def turned_away(program: Program, orders: int, times: int, **settings: Any) -> tuple[str, str]:
    """A webhook whose token is wrong while a sender tries, and right afterwards."""
    webhook, path = make_webhook(program, authentication={"method": "token", "token": WRONG}, **settings)
    attempts(program, path, orders, times, 401)
    return webhook, path


def correct(program: Program, webhook: str) -> None:
    change = {"authentication": {"token": RIGHT}}
    assert ask(program, "PATCH", f"/api/v1/webhooks/{webhook}", change)[0] == 200


def orders_of(engine: CountingEngine) -> list[int]:
    """Of each delivery that was started, however often that was asked for."""
    by_key = {one["invocationId"]: one["payload"]["order"] for one in list(engine.triggers)}
    return sorted(by_key.values())


@pytest.mark.parametrize("protection", [False, True])
def test_after_hours_of_a_wrong_token_each_order_starts_once(
    tmp_path: Path, engine: CountingEngine, protection: bool
) -> None:
    with at_work(tmp_path, engine) as program:
        webhook, path = turned_away(program, 17, 6, duplicateProtection={"enabled": protection})

        def says(*options: str) -> str:
            connected = {"POSTERN_URL": program.url, "POSTERN_API_KEY": program.admin_key}
            done = run_postern(tmp_path, "history", "recheck", webhook, *options, **connected)
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert "102 calls would still be rejected: credential does not match (102)" in says()
        correct(program, webhook)
        assert "102 calls, 17 events would start now" in says()
        assert "17 admitted" in says("--admit")
        wait_until(lambda: len(engine.keys) >= 17, what="the orders to start")
        after = says()
        assert "0 calls would start now" in after and "85 calls are other attempts at what was" in after
        assert orders_of(engine) == list(range(17))
        if protection:  # the sender's next attempts
            attempts(program, path, 17, 1, 200)
            assert orders_of(engine) == list(range(17))


def test_who_is_killed_while_admitting_goes_on_and_starts_each_event_once(
    tmp_path: Path, engine: CountingEngine
) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "sitecustomize.py").write_text(DIES_WITHIN)
    dying = {"PYTHONPATH": os.pathsep.join([str(planted), os.environ.get("PYTHONPATH", "")])}
    program = at_work(tmp_path, engine, **dying)
    try:
        program.wait_until_ready()
        webhook, _ = turned_away(program, 90, 2)
        correct(program, webhook)
        with pytest.raises(OSError):
            ask(program, "POST", f"/api/v1/webhooks/{webhook}/readmissible", {})
        assert program.process.wait(60) == -signal.SIGKILL
    finally:
        program.kill()
    with at_work(tmp_path, engine) as program:
        status, done = ask(program, "POST", f"/api/v1/webhooks/{webhook}/readmissible", {})
        assert status == 200 and 0 < done["admitted"] < 90, "some were admitted before, and some were not"
        wait_until(lambda: len(engine.keys) >= 90, what="all to start")
        assert ask(program, "POST", f"/api/v1/webhooks/{webhook}/readmissible", {})[1]["admitted"] == 0
        assert orders_of(engine) == list(range(90))


def test_two_gateways_that_admit_the_same_start_each_event_once(
    tmp_path: Path, engine: CountingEngine, migrated_url: str
) -> None:
    shared = {"POSTERN_DATABASE_URL": migrated_url, "POSTERN_SECRET_KEYS": "one key for both of them"}
    with (
        at_work(tmp_path / "one", engine, **shared) as one,
        at_work(tmp_path / "two", engine, **shared) as two,
    ):
        webhook, _ = turned_away(one, 60, 3)
        correct(one, webhook)
        check = f"/api/v1/webhooks/{webhook}/readmissible"
        wait_until(lambda: ask(two, "GET", check)[1]["events"] == 60, what="both to know the token")
        with ThreadPoolExecutor(4) as people:
            done = list(people.map(lambda program: ask(program, "POST", check, {}), [one, two, one, two]))
        # Where the machine is busy one may be told to come again, and what it has done is not said.
        told = [said["admitted"] for status, said in done if status == 200]
        assert {status for status, _ in done} <= {200, 503} and told, json.dumps(done)
        assert sum(told) == 60 or len(told) < len(done)
        wait_until(lambda: len(engine.keys) >= 60, what="all to start")
        assert orders_of(engine) == list(range(60))


# --- the whole story, with a clock that is moved ---------------------------------------------------------------------

ORDERS, HOURS = 17, 7.5
PAUSES = (0, 60, 300, 1200, 3600, 10_800)
"""Seconds after which the sender tries an order again: six times, as it hears no 2xx."""
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def by_token(_: bytes) -> dict[str, str]:
    return {"X-Api-Key": RIGHT}


def by_signature(body: bytes) -> dict[str, str]:
    return {"X-Shopify-Hmac-Sha256": base64.b64encode(hmac.digest(RIGHT.encode(), body, "sha256")).decode()}


class Person:
    """Knows the console alone: follows the links and sends the forms that stand on its pages."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client, self._page = client, ""

    async def opens(self, path: str) -> str:
        return self._seen(await self._client.get(path))

    async def follows(self, words: str) -> str:
        (path,) = {*re.findall(rf'<a [^>]*href="([^"]+)"[^>]*>{words}</a>', self._page)}
        return await self.opens(path)

    async def sends(self, words: str, **typed: str) -> str:
        """The form with these words in it. Its fields may stand elsewhere on the page."""
        (form,) = (one for one in re.findall(r"<form.*?</form>", self._page, re.DOTALL) if words in one)
        path, own = re.search(r'action="([^"]+)"', form), re.search(r'id="([^"]+)"', form)
        assert path is not None
        tags = re.findall(r"<input[^>]*>", form)
        tags += [one for one in re.findall(r"<input[^>]*>", self._page) if own and f'form="{own[1]}"' in one]
        hidden = [dict(re.findall(r'(\w+)="([^"]*)"', one)) for one in tags if 'type="hidden"' in one]
        fields = {one["name"]: one["value"] for one in hidden} | typed
        origin = {"Origin": str(self._client.base_url).rstrip("/")}
        return self._seen(await self._client.post(path[1], data=fields, headers=origin))

    def _seen(self, answer: httpx2.Response) -> str:
        assert answer.status_code == 200, answer.text
        self._page = html.unescape(answer.text)
        return self._page


@pytest.mark.parametrize("protection", [False, True], ids=["unprotected", "protected"])
@pytest.mark.parametrize(
    ("how", "credential", "why"),
    [
        ({"method": "token", "token": WRONG}, by_token, "credential does not match"),
        (
            {"method": "hmac", "provider": "shopify", "secret": WRONG},
            by_signature,
            "signature does not match",
        ),
    ],
    ids=["token", "signature"],
)
async def test_seven_and_a_half_hours_of_401_from_the_alarm_to_an_empty_list_by_the_console_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: dict[str, str],
    credential: Callable[[bytes], dict[str, str]],
    why: str,
    protection: bool,
) -> None:
    clock, told = OneClock(), list[tuple[float, str]]()
    monkeypatch.setattr(identity, "clock", clock)
    for page in (incidents, webhook_page):  # however busy the machine is
        monkeypatch.setattr(page, "LOOKS_FOR", None)

    def hears(message: Received) -> Reply:
        told.append((clock.now, message.json["type"]))
        return Reply(200)

    async with (
        a_house(tmp_path, POSTERN_OUTBOUND_ALLOWED="127.0.0.1") as house,
        stand_in(hears) as channel,
        mail_server() as (port, mails),
    ):
        gateway, base = house.gateway, house.gateway.site.base_url
        server = read_mail_server(f"smtp://127.0.0.1:{port}?from=postern@shop.example")
        gateway.outbound.mail = partial(send_mail, Guard(Allowlist.parse(["127.0.0.1"])), server)
        addresses = f"webhook+{channel.url}/#{KEY} mailto:ops@shop.example"
        gateway.alarms = replace(gateway.alarms, channels=read_channels(addresses))
        webhook = await house.webhook(
            name="Shop", authentication=how, duplicateProtection={"enabled": protection}
        )
        alarms, tells = AlarmLoop(gateway), TellLoop(gateway)

        async def sends(order: int) -> int:
            body = b'{"order":%d}' % order
            return (await house.call(webhook, body, headers=credential(body))).status

        async def passes(until: float, at_a_time: float) -> None:
            while clock.now < until:
                clock.passes(min(at_a_time, until - clock.now))
                await alarms.round()
                await tells.round()

        # --- nobody is let in
        began, third = clock.now, 0.0
        apart = (HOURS * 3600 - PAUSES[-1]) / (ORDERS - 1)
        tries = [
            (began + order * apart + pause, number, order)
            for order in range(ORDERS)
            for number, pause in enumerate(PAUSES)
        ]
        for number, (at, _, order) in enumerate(sorted(tries)):
            if told and number % 10:  # a look now and then is enough: nothing more is to be told
                clock.passes(at - clock.now)
            else:
                await passes(at, 900 if told else 15)
            assert await sends(order) == 401
            third = clock.now if number == 2 else third
        await passes(clock.now + 20, 20)
        ((at, opened),) = told
        assert opened == "incident.opened" and 0 < at - third < 20 and len(mails) == 1

        # --- a person reads it, corrects the secret, and admits
        await accounts.create_user(gateway, OWNER, "ann", PASSWORD, "write")
        transport = httpx2.ASGITransport(app=Starlette(routes=console_routes(gateway)))
        async with httpx2.AsyncClient(
            transport=transport, base_url=base, verify=WITHOUT_TLS, follow_redirects=True
        ) as client:
            ann = Person(client)
            await ann.opens("/webhooks")
            assert "Incidents 1" in await ann.sends("Password", name="ann", password=PASSWORD)
            incident = await ann.follows("Calls rejected")
            path = re.search(r"/incidents/inc_\w+", incident)
            assert "102 calls rejected since" in incident and path is not None
            assert ("Shopify gave the first of them up" in incident) == (how["method"] == "hmac")
            assert "All 102 done" in await ann.sends("Save it, and admit them", secret=RIGHT)
            rejected = await ann.opens(f"/webhooks/{webhook.id}/rejected")
            assert "Nothing is left to admit" in rejected and "Admit " not in rejected
            await house.deliver()

            # --- calls go well again
            for minute in range(ORDERS):
                assert await sends(minute if protection else ORDERS + minute) == 200
                await passes(clock.now + 60, 60)
            await house.deliver()
            assert [one for _, one in told] == ["incident.opened", "incident.closed"] and len(mails) == 2
            over = await ann.opens(path[0])
            assert "each rejected call was admitted" in over and "Admit 1" not in over
        started = Counter(json.loads(one.payload)["order"] for one in house.engine.started.values())
        assert started == dict.fromkeys(range(ORDERS if protection else 2 * ORDERS), 1)
        assert {*house.engine.times.values()} == {1}
