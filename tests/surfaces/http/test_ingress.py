"""Every row of the decision table, asked of the real program by HTTP, and what history keeps of it."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.program import Program
from support.reply import HttpReply
from support.waiting import wait_until
from support.webhooks import SECOND_TOKEN, TOKEN, ServedWebhook, how_many, make_webhook, stories
from support.wire import exchange

BODY = b'{"customer": {"email": "ada@example.com"}, "items": [{"sku": "A-1"}], "total": 10.50, "paid": true}'
JSON = ("Content-Type", "application/json")
KEY = ("X-Api-Key", TOKEN)


def token(**settings: str) -> dict[str, Any]:
    return {"authentication": {"method": "token", "token": TOKEN, **settings}}


class House:
    """The program with a webhook for each row of the table."""

    def __init__(self, folder: Path) -> None:
        self.data_dir = folder / "data"
        hooks: dict[str, dict[str, Any]] = {
            "plain": {},
            "open": {"authentication": {"method": "none"}},
            "bearer": token(placement="bearer", secondToken=SECOND_TOKEN),
            "basic": token(placement="basic", username="Ünal"),
            "url": token(placement="url", parameterName="t[k]"),
            "header": token(headerName="X-Shop-Secret", secondToken=SECOND_TOKEN),
            "allowed": {"ipAllowlist": ["192.0.2.0/24", "127.0.0.1"]},
        }
        self.webhooks: dict[str, ServedWebhook] = {}
        for name, settings in hooks.items():
            self.webhooks[name] = make_webhook(self.data_dir, name=name, **settings)
        self.program = Program(folder, {"POSTERN_ENGINE": "none", "POSTERN_LOG": "json"})

    def call(
        self,
        name: str,
        *headers: tuple[str, str],
        body: bytes | None = BODY,
        method: str = "POST",
        query: str = "",
        kind: str | None = JSON[1],
    ) -> HttpReply:
        types = [("Content-Type", kind)] if kind else []
        return exchange(self.program.port, method, self.webhooks[name].path + query, [*types, *headers], body)

    def stories(self, name: str) -> list[dict[str, Any]]:
        return stories(self.data_dir, self.webhooks[name])

    def recorded(self, name: str, answer: HttpReply) -> dict[str, Any]:
        """The one new history entry that this answer names."""
        (story,) = [one for one in self.stories(name) if one["id"] == answer.headers["x-invocation-id"]]
        assert (answer.json["invocationId"], story["httpStatus"]) == (story["id"], answer.status)
        assert (story["method"], story["address"]) == ("POST", "127.0.0.1")
        assert story["path"] == self.webhooks[name].path and story["durationMs"] >= 0
        return story


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("ingress"))
    with house.program:
        yield house
    left = b"".join(file.read_bytes() for file in house.data_dir.iterdir() if file.name != "secret.key")
    for secret in (TOKEN, SECOND_TOKEN):
        in_basic = [base64.b64encode(f"{user}:{secret}".encode()).decode() for user in ("Ünal", "x")]
        for spelling in (secret, *in_basic):
            assert spelling.encode() not in left
            assert spelling not in house.program.output()


def basic(user: str, password: str) -> tuple[str, str]:
    return "Authorization", "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


# --- accepted --------------------------------------------------------------------------------------------------------


def test_an_accepted_call_hears_so_and_is_stored_whole(house: House) -> None:
    answer = house.call(
        "plain", KEY, ("X-Trace", "7"), ("Cookie", "session=abc"), query="?shop=a%20b&token=" + TOKEN
    )
    assert answer.status == 200
    assert answer.json == {"status": "accepted", "invocationId": answer.headers["x-invocation-id"]}
    story = house.recorded("plain", answer)
    assert (story["status"], story["code"], story["matched"]) == ("accepted", "accepted", "main")
    assert (story["body"], story["bodySize"]) == (BODY.decode(), len(BODY))
    assert story["payload"]["items"] == [{"sku": "A-1"}]
    assert story["query"] == "shop=a%20b&token=***"
    for header in (["x-api-key", "***"], ["cookie", "***"], ["x-trace", "7"]):
        assert header in story["headers"]
    steps = [step["step"] for step in story["trace"] if step["ok"]]
    assert len(steps) == len(story["trace"]) and steps == ["authentication", "content", "field mapping"]
    assert [delivery["state"] for delivery in story["deliveries"]] == ["queued"]


@pytest.mark.parametrize(
    ("name", "headers", "query", "matched"),
    [
        ("open", [], "", None),
        ("header", [("x-shop-secret", TOKEN)], "", "main"),
        ("header", [("X-Shop-Secret", SECOND_TOKEN)], "", "second"),
        ("bearer", [("Authorization", "Bearer " + TOKEN)], "", "main"),
        ("bearer", [("authorization", "bearer   " + SECOND_TOKEN)], "", "second"),
        ("basic", [basic("Ünal", TOKEN)], "", "main"),
        ("url", [], "?a=b&t%5Bk%5D=" + TOKEN, "main"),
        ("allowed", [KEY], "", "main"),
    ],
)
def test_the_right_token_in_the_right_place_is_accepted(
    house: House, name: str, headers: list[tuple[str, str]], query: str, matched: str | None
) -> None:
    answer = house.call(name, *headers, query=query)
    assert answer.status == 200
    story = house.recorded(name, answer)
    assert story["matched"] == matched
    assert TOKEN not in str(story)
    assert SECOND_TOKEN not in str(story)


# --- rejected ---------------------------------------------------------------------------------------------------------


def test_an_unknown_code_is_not_found_in_constant_words_and_nothing_is_recorded(house: House) -> None:
    before = how_many(house.data_dir)
    heard = set()
    for path in (
        "/webhook/nobody",
        "/webhook/" + "x" * 5000,
        "/webhook/" + house.webhooks["plain"].short_code.swapcase(),
    ):
        answer = exchange(house.program.port, "POST", path, [KEY, JSON], BODY)
        assert (answer.status, answer.code) == (404, "webhook_not_found")
        heard.add((answer.body, tuple(answer.headers)))
    assert len(heard) == 1
    assert how_many(house.data_dir) == before


# --- what all calls have in common -----------------------------------------------------------------------------------


def test_every_call_to_a_known_webhook_is_one_invocation_and_one_log_line(house: House) -> None:
    def lines() -> int:
        return house.program.output().count(f'"webhook":"{house.webhooks["open"].id}"')

    before, lines_before = len(house.stories("open")), lines()
    for wrong, status in (
        ({}, 200),
        ({"method": "DELETE"}, 405),
        ({"body": b"["}, 400),
        ({"kind": "image/png"}, 415),
    ):
        assert house.call("open", **wrong).status == status
    assert len(house.stories("open")) == before + 4
    wait_until(lambda: lines() == lines_before + 4, what="a log line for each call")
