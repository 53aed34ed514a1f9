"""Pages without a browser and without a socket: what is made before anybody asks, and what the list of
webhooks says."""

import re
from pathlib import Path

import pytest
from starlette.requests import Request

from postern.core.access.accounts import Actor
from postern.core.problems import Refused
from postern.core.watch.alarms import Found
from postern.surfaces.console import rehearsal
from postern.surfaces.console.labels import LABELS
from postern.surfaces.console.pages import FOLDER
from postern.surfaces.console.views.history import asked, sent, story
from postern.surfaces.console.views.history import call as call_page
from postern.surfaces.console.views.operations import settings
from postern.surfaces.console.views.webhooks import listing as webhooks
from postern.surfaces.console.views.webhooks import schedule
from postern.surfaces.console.views.webhooks import settings as own_settings
from postern.surfaces.console.views.webhooks import webhook as webhook_page
from postern.surfaces.console.visit import Visit, problem_of
from postern.usecases.history.history import replay
from postern.usecases.runtime.process import GatewayTrouble
from postern.usecases.webhooks.webhooks import change
from support.house import OWNER, House, a_house

READER = Actor("reader", "read")


async def test_every_page_can_be_rehearsed_and_nothing_is_changed_by_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_house(tmp_path) as house:
        webhook = await house.webhook()
        await house.call(webhook, b'{"n": 1}')
        before = await entries(house)
        acts = await rehearsal.acts(house.gateway)
        assert len(acts) == len(rehearsal.PATHS)
        for view, names in acts:
            shown = await view(Visit(rehearsal._request(names), house.gateway, rehearsal.ACTOR))
            assert (shown.status_code, len(shown.body) > 1000) == (200, True), view
            assert b"can reach this address" not in shown.body, "its address is public"
        assert await entries(house) == before


async def entries(house: House) -> int:
    return len(await house.gateway.store.audit.page(100))


async def test_a_webhook_with_an_incident_is_marked_with_it_and_counted_as_failing(tmp_path: Path) -> None:
    async with a_house(tmp_path) as house:
        quiet, webhook = await house.webhook(name="Quiet"), await house.webhook(name="Orders")
        page = await listed(house)
        assert "state=failing" not in page and page.index(f">{webhook.name}<") < page.index(f">{quiet.name}<")
        incidents = house.gateway.store.incidents
        incident = await incidents.begin(quiet.id, "rejected", Found(1.0, 1.0, 3, {}), 1.0)
        house.gateway.runtime.incidents = await incidents.open()
        page = await listed(house)
        assert f'<a class="badge bad" href="/incidents/{incident}">Calls rejected</a>' in page
        assert 'state=failing">1 failing</a>' in page
        assert page.index(f">{quiet.name}<") < page.index(f">{webhook.name}<"), "it stands first"
        request: Request = rehearsal._request({"webhook": quiet.id})
        overview = bytes((await webhook_page.overview(Visit(request, house.gateway, OWNER))).body).decode()
        assert f'<a href="/incidents/{incident}">What can be done</a>' in overview


async def test_replays_that_failed_alike_are_one_entry_that_opens(tmp_path: Path) -> None:
    async with a_house(tmp_path) as house:
        invocation = await house.recorded(await house.webhook())
        await house.deliver()
        for why in [*["job 10421 was refused", "job 10422 was refused"] * 2, "nobody is there"]:
            house.engine.refuses = why
            await replay(house.gateway, OWNER, invocation)
            await house.deliver()
        request: Request = rehearsal._request({"invocation": invocation})
        page = bytes((await call_page.detail(Visit(request, house.gateway, OWNER))).body).decode()
        assert (page.count("replayed it"), page.count("×4, the first at")) == (5, 1)
        assert page[page.index("×4, the first at") : page.index("</ol>")].count("replayed it") == 3


async def test_a_trouble_of_the_gateway_leads_to_its_calls_and_replays_them(tmp_path: Path) -> None:
    async with a_house(tmp_path) as house:
        house.gateway.runtime.troubles = [
            GatewayTrouble("lost", "The engine does not know 2 calls.", "", "lost")
        ]
        page = await listed(house)
        assert "The engine does not know 2 calls." in page and 'href="/calls?status=lost"' in page
        assert '<input type="hidden" name="status" value="lost"><button' in page


async def test_messages_speak_of_the_labels_that_stand_beside_the_inputs(tmp_path: Path) -> None:
    pages = "".join(file.read_text() for file in (FOLDER / "templates").rglob("*.html"))
    # The last one is a tick, and its words are what follows there.
    # A verify token has the words of its sender.
    elsewhere = {
        "Custom scheme",
        "What follows",
        "What starts",
        "Verify token",
        *sent.FIELD_LABELS.values(),
        *asked.TOKENS,
    }
    assert [
        one
        for one in LABELS.values()
        if f"'{one}'" not in pages and f">{one}<" not in pages and one not in elsewhere
    ] == []
    async with a_house(tmp_path) as house:
        webhook = await house.webhook()
        wrong = {"ipAllowlist": ["10.0.0.1", "nowhere"], "rateLimit": {"callsPerSecond": 0}}
        with pytest.raises(Refused) as refused:
            await change(house.gateway, OWNER, webhook.id, wrong)
    detail = problem_of(refused.value).detail
    assert "Calls a second: " in detail and "Addresses that may call, line 2: " in detail
    assert "rateLimit" not in detail and "ipAllowlist" not in detail


async def test_titles_begin_with_the_tab_and_a_reader_can_operate_no_input(tmp_path: Path) -> None:
    async with a_house(tmp_path) as house:
        token = {"method": "token", "token": "a token of the tests"}
        webhook = await house.webhook(name="Shop", authentication=token)
        for view, title in (
            (own_settings.show, "Settings"),
            (schedule.show, "Schedule"),
        ):
            request = rehearsal._request({"webhook": webhook.id})
            pages = [
                bytes((await view(Visit(request, house.gateway, actor))).body).decode()
                for actor in (OWNER, READER)
            ]
            assert f"<title>{title} · Shop · Postern</title>" in pages[0]
            assert [bool(re.search('<fieldset class="[a-z -]+" disabled>', page)) for page in pages] == [
                False,
                True,
            ], title
        settings_page = await settings.sessions(Visit(rehearsal._request({}), house.gateway, OWNER))
        assert b"<title>Sessions \xc2\xb7 Settings" in settings_page.body


async def test_a_call_s_page_asks_again_until_its_start_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_house(tmp_path) as house:
        webhook = await house.webhook()
        call = (await house.call(webhook)).json["invocationId"]
        assert 'hx-trigger="every' in await opened(house, call)
        await house.deliver()
        assert 'hx-trigger="every' not in await opened(house, call)
        await replay(house.gateway, OWNER, call)
        assert 'hx-trigger="every' in await opened(house, call)
        house.engine.down = True
        await house.deliver()
        monkeypatch.setattr(story, "RESTS", 0.0)  # the seconds in which a click more starts nothing are over
        assert 'hx-trigger="every' not in await opened(house, call), (
            "what is tried again and again may take days"
        )


async def opened(house: House, call: str) -> str:
    shown = await call_page.detail(Visit(rehearsal._request({"invocation": call}), house.gateway, OWNER))
    return bytes(shown.body).decode()


async def listed(house: House) -> str:
    request: Request = rehearsal._request({})
    shown = await webhooks.listing(Visit(request, house.gateway, OWNER))
    return bytes(shown.body).decode()
