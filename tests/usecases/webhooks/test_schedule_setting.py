"""What may be written as a schedule, and what becomes of the values of its headers when it is changed."""

from typing import Any

import pytest

from postern.core.address import NOBODY, Allowlist
from postern.core.problems import Refused
from postern.core.webhooks.bounds import LONGEST_URL
from postern.usecases import stored_webhook
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.requests import LONGEST_HEADER, ScheduleRequest
from postern.usecases.webhooks.views import Webhook
from support.house import OWNER, House
from support.refusals import fields_of, fields_refused
from usecases.webhooks.test_configuration import request

URL = "https://api.example.com/orders"


async def scheduled(house: House, url: str = URL, **setting: Any) -> Webhook:
    return await house.webhook(schedule={"url": url, "every": "15m", **setting})


def written(url: str = URL, **setting: Any) -> ScheduleRequest:
    """As it is read, before any webhook has it."""
    given = {"url": url, "every": "15m", **setting}
    schedule = request(schedule=given).schedule
    assert schedule is not None
    return schedule


def misread(url: str = URL, **setting: Any) -> dict[str, str]:
    with pytest.raises(Refused) as caught:
        written(url, **setting)
    return fields_of(caught.value)


async def wrong(house: House, url: str = URL, **setting: Any) -> dict[str, str]:
    """The fields that are refused, each with the sentence that says why."""
    return await fields_refused(scheduled(house, url, **setting))


async def change(house: House, webhook: Webhook, **setting: Any) -> Webhook:
    return await webhooks.change(house.gateway, OWNER, webhook.id, {"schedule": setting})


async def kept(house: House, webhook: Webhook) -> dict[str, str]:
    """The values that are stored, by the name of their header."""
    stored = await stored_webhook.stored(house.gateway, webhook.id)
    return {name.removeprefix("header:"): one.value.decode() for name, one in stored.secrets.items()}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("api.example.com/orders", "beginning with https://"),
        ("ftp://api.example.com/", "beginning with https://"),
        ("https://api.example.com/a b", "beginning with https://"),
        ("https://api.example.com/a\nb", "beginning with https://"),
        ("https://api.example.com/\u00e9", "beginning with https://"),
        ("https://api.example.com/" + "x" * (LONGEST_URL - 23), "beginning with https://"),
        ("https://[::1/", "is not a URL"),
        ("https://api.example.com:port/", "is not a URL"),
        ("https://api.example.com:65536/", "is not a URL"),
        ("https:///orders", "names no host"),
        ("https://api.example.com:0/", "names no host"),
        ("https://ada@api.example.com/", "no username or password"),
        ("https://:secret@api.example.com/", "no username or password"),
    ],
)
def test_what_is_no_address_to_fetch_is_refused(url: str, expected: str) -> None:
    errors = misread(url)
    assert errors.keys() == {"schedule.url"} and expected in errors["schedule.url"]


async def test_headers_have_their_bounds(house: House) -> None:
    many = {f"X-{number}": "v" for number in range(20)}
    assert len(await kept(house, await scheduled(house, headers=many))) == 20
    assert (misread(headers={**many, "X-More": "v"})).keys() == {"schedule.headers"}
    made = await scheduled(house, headers={"X-A": "v", "X-Long": "v" * LONGEST_HEADER})
    assert (await kept(house, made))["x-long"] == "v" * LONGEST_HEADER
    for value in ("", "v" * (LONGEST_HEADER + 1), "\u00e9", "a\tb"):
        errors = misread(headers={"X-A": value})
        assert errors == {"schedule.headers.X-A": "a value has 1 to 4096 printable ASCII characters"}
    errors = misread(headers={"X-A": "one", "x-a": "two"})
    assert errors == {"schedule.headers": "a header is named twice"}
    assert (misread(headers=["X-A", 1])).keys() == {"schedule.headers"}


async def test_a_header_without_a_value_is_refused_and_the_names_alone_are_enough_later(house: House) -> None:
    required = {"schedule.headers.X-A": "is required", "schedule.headers.X-B": "is required"}
    assert await wrong(house, headers=["X-A", "X-B"]) == required
    made = await scheduled(house, headers={"X-A": "one", "X-B": "two"})
    assert made.schedule is not None and made.schedule.headers == ["X-A", "X-B"]
    # As a client sends back what it was shown.
    await change(house, made, headers=["X-A", "X-B"], timeoutSeconds=5)
    assert await kept(house, made) == {"x-a": "one", "x-b": "two"}
    await change(house, made, headers=["X-B"])
    assert await kept(house, made) == {"x-b": "two"}
    assert list(await fields_refused(change(house, made, headers=["X-A", "x-b"]))) == ["schedule.headers.X-A"]
    renamed = await change(house, made, headers=["x-b"])
    assert renamed.schedule is not None and renamed.schedule.headers == ["x-b"]
    assert await kept(house, made) == {"x-b": "two"}, "capitals make no other header"


SITES = {
    "https://api.example.com/other?page=2": False,
    "https://API.example.com/orders": False,
    "http://api.example.com/orders": True,
    "https://api.example.com:8443/orders": True,
    "https://example.com/orders": True,
}
"""Whether it is another site than the one of the tests."""


async def test_values_stay_with_the_site_they_were_given_for(house: House) -> None:
    for url, is_another in SITES.items():
        made = await scheduled(house, headers={"X-A": "one"})
        if not is_another:
            await change(house, made, url=url)
            assert await kept(house, made) == {"x-a": "one"}
            continue
        wrong = {"schedule.headers.X-A": "send its value again: the URL is another site's"}
        assert await fields_refused(change(house, made, url=url)) == wrong
        await change(house, made, url=url, headers={"X-A": "two"})
        assert await kept(house, made) == {"x-a": "two"}
        await change(house, made, url=URL, headers={"X-A": None})
        assert await kept(house, made) == {}


async def test_without_a_schedule_no_value_of_it_is_kept(house: House) -> None:
    token = {"method": "token", "token": "a token of the tests"}
    schedule = {"url": URL, "every": "15m", "headers": {"X-A": "one"}}
    made = await house.webhook(authentication=token, schedule=schedule)
    await webhooks.change(house.gateway, OWNER, made.id, {"schedule": None})
    assert await kept(house, made) == {"main": "a token of the tests"}
    asking = change(house, made, url=URL, every="15m", headers=["X-A"])
    assert await fields_refused(asking) == {"schedule.headers.X-A": "is required"}


async def test_why_an_address_cannot_be_fetched_and_what_would_open_it_is_reported(house: House) -> None:
    house.gateway.outbound.allowed = NOBODY
    why = "{}; nothing is fetched from there unless POSTERN_OUTBOUND_ALLOWED opens it"
    here, private = "this host", "a private network"
    for host, reason in (("127.0.0.1", here), ("localhost", here), ("10.1.2.3", private)):
        errors = await wrong(house, f"http://{host}:8080/")
        assert errors == {"schedule.url": why.format(f"{host} is {reason}")}
    errors = await wrong(house, "http://169.254.169.254/")
    assert errors["schedule.url"].endswith("is a cloud's metadata service; nothing is fetched from there")
    assert await scheduled(house, "https://name.example/"), "where a name leads to is judged at each fetch"
    house.gateway.outbound.allowed = Allowlist.parse(["127.0.0.1"])
    for host in ("127.0.0.1", "localhost"):
        opened = await scheduled(house, f"http://{host}:8080/")
    house.gateway.outbound.allowed = NOBODY
    assert (await change(house, opened, timeoutSeconds=5)).schedule is not None
    with pytest.raises(Refused):
        await change(house, opened, url="http://localhost:8081/")
    house.gateway.outbound.allowed = None
    assert await scheduled(house, "http://127.0.0.1/"), "a process that does not fetch cannot know"
