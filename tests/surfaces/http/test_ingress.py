"""Every row of the decision table, asked of the real program by HTTP, and what history keeps of it."""

import base64
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from postern.usecases.webhooks import webhooks
from support.program import Program, StartProgram
from support.reply import HttpReply
from support.waiting import wait_until
from support.webhooks import (
    OWNER,
    SECOND_TOKEN,
    TOKEN,
    ServedWebhook,
    how_many,
    make_webhook,
    stories,
    within,
)
from support.wire import exchange

BODY = b'{"customer": {"email": "ada@example.com"}, "items": [{"sku": "A-1"}], "total": 10.50, "paid": true}'
JSON = ("Content-Type", "application/json")
KEY = ("X-Api-Key", TOKEN)


class House:
    """The program with a webhook for each row of the table."""

    def __init__(self, folder: Path) -> None:
        self.data_dir = folder / "data"
        self._hooks = {
            "plain": {},
            "open": {"authentication": {"method": "none"}},
            "bearer": {
                "authentication": {
                    "method": "token",
                    "placement": "bearer",
                    "token": TOKEN,
                    "secondToken": SECOND_TOKEN,
                }
            },
            "basic": {
                "authentication": {
                    "method": "token",
                    "placement": "basic",
                    "username": "Ünal",
                    "token": TOKEN,
                }
            },
            "url": {
                "authentication": {
                    "method": "token",
                    "placement": "url",
                    "parameterName": "t[k]",
                    "token": TOKEN,
                }
            },
            "header": {
                "authentication": {
                    "method": "token",
                    "headerName": "X-Shop-Secret",
                    "token": TOKEN,
                    "secondToken": SECOND_TOKEN,
                }
            },
            "disabled": {"enabled": False},
            "allowlisted": {"ipAllowlist": ["192.0.2.0/24"]},
            "allowed": {"ipAllowlist": ["192.0.2.0/24", "127.0.0.1"]},
            "small": {"payloadLimitBytes": 100},
            "slow": {"rateLimit": {"callsPerSecond": 0.01, "burst": 3}},
            "guessed": {},
            "once": {"duplicateProtection": {"enabled": True, "key": "header:X-Event-Id"}},
            "mapped": {
                "fieldMapping": {
                    "fieldOne": "customer.email",
                    "fieldTwo": "items[0].sku",
                    "fieldThree": "total",
                    "fieldFour": "no.such",
                }
            },
        }
        self.webhooks: dict[str, ServedWebhook] = {}
        for name, settings in self._hooks.items():
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
        found = [story for story in self.stories(name) if story["id"] == answer.headers["x-invocation-id"]]
        assert len(found) == 1
        story = found[0]
        assert answer.json["invocationId"] == story["id"]
        assert story["httpStatus"] == answer.status
        assert (story["method"], story["address"], story["path"]) == (
            "POST",
            "127.0.0.1",
            self.webhooks[name].path,
        )
        assert story["durationMs"] >= 0
        return story


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    house = House(tmp_path_factory.mktemp("ingress"))
    try:
        house.program.wait_until_ready()
        yield house
        assert house.program.stop() == 0
        left = b"".join(file.read_bytes() for file in house.data_dir.iterdir() if file.name != "secret.key")
        for secret in (TOKEN, SECOND_TOKEN):
            for spelling in (
                secret,
                base64.b64encode(f"Ünal:{secret}".encode()).decode(),
                base64.b64encode(f"x:{secret}".encode()).decode(),
            ):
                assert spelling.encode() not in left
                assert spelling not in house.program.output()
    finally:
        house.program.kill()


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
    assert ["x-api-key", "***"] in story["headers"]
    assert ["cookie", "***"] in story["headers"]
    assert ["x-trace", "7"] in story["headers"]
    assert [(step["step"], step["ok"]) for step in story["trace"]] == [
        ("authentication", True),
        ("content", True),
        ("field mapping", True),
    ]
    assert [delivery["state"] for delivery in story["deliveries"]] == ["queued"]


def test_fields_are_taken_out_of_the_payload_by_their_paths(house: House) -> None:
    story = house.recorded("mapped", house.call("mapped", KEY))
    assert story["deliveries"][0]["fields"] == {
        "fieldOne": "ada@example.com",
        "fieldTwo": "A-1",
        "fieldThree": "10.50",
    }
    assert story["trace"][-1]["detail"] == "fieldFour: nothing at no.such"


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


@pytest.mark.parametrize(
    ("name", "headers", "query", "code"),
    [
        ("header", [], "", "credential_missing"),
        ("header", [("X-Shop-Secret", "wrong")], "", "credential_mismatch"),
        ("header", [("X-Shop-Secret", "")], "", "credential_mismatch"),
        ("header", [KEY], "?token=" + TOKEN, "credential_missing"),
        ("bearer", [], "", "credential_missing"),
        ("bearer", [basic("x", TOKEN)], "", "credential_missing"),
        ("bearer", [("Authorization", "Bearer wrong")], "", "credential_mismatch"),
        (
            "bearer",
            [("Authorization", "Bearer " + TOKEN), ("Authorization", "Bearer " + TOKEN)],
            "",
            "credential_mismatch",
        ),
        ("basic", [], "", "credential_missing"),
        ("basic", [basic("x", TOKEN)], "", "credential_mismatch"),
        ("basic", [basic("Ünal", "wrong")], "", "credential_mismatch"),
        ("basic", [("Authorization", "Basic ???")], "", "credential_mismatch"),
        ("url", [], "", "credential_missing"),
        ("url", [], "?t[k]=wrong", "credential_mismatch"),
        ("url", [], f"?t[k]={TOKEN}&t[k]={TOKEN}", "credential_mismatch"),
    ],
)
def test_no_token_or_the_wrong_one_is_rejected_with_the_reason(
    house: House, name: str, headers: list[tuple[str, str]], query: str, code: str
) -> None:
    answer = house.call(name, *headers, query=query)
    assert (answer.status, answer.code) == (401, code)
    challenge = {"bearer": 'Bearer realm="webhook"', "basic": 'Basic realm="webhook", charset="UTF-8"'}.get(
        name
    )
    assert answer.headers.get("www-authenticate") == challenge
    story = house.recorded(name, answer)
    assert (story["status"], story["code"], story["matched"], story["deliveries"]) == (
        "rejected",
        code,
        None,
        [],
    )
    assert [(step["step"], step["ok"]) for step in story["trace"]] == [("authentication", False)]
    assert story["body"] == BODY.decode()
    assert TOKEN not in str(story)


def test_an_unknown_code_is_not_found_in_constant_words_and_nothing_is_recorded(house: House) -> None:
    before = how_many(house.data_dir)
    in_history = set()
    for path in (
        "/webhook/nobody",
        "/webhook/" + "x" * 5000,
        "/webhook/" + house.webhooks["plain"].short_code.swapcase(),
    ):
        answer = exchange(house.program.port, "POST", path, [KEY, JSON], BODY)
        assert (answer.status, answer.code) == (404, "webhook_not_found")
        in_history.add((answer.body, tuple(name for name in answer.headers)))
    assert len(in_history) == 1
    assert how_many(house.data_dir) == before


def test_another_method_is_recorded_and_answered_which_is_allowed(house: House) -> None:
    answer = house.call("plain", KEY, method="PUT")
    assert (answer.status, answer.code, answer.headers["allow"]) == (405, "method_not_allowed", "POST")
    story = house.stories("plain")[0]
    assert (story["id"], story["method"], story["code"]) == (
        answer.headers["x-invocation-id"],
        "PUT",
        "method_not_allowed",
    )


@pytest.mark.parametrize(
    ("name", "status", "code", "step"),
    [
        ("disabled", 403, "webhook_disabled", "enabled"),
        ("allowlisted", 403, "ip_not_allowed", "IP allowlist"),
    ],
)
def test_what_is_rejected_before_the_body_is_rejected_whoever_asks(
    house: House, name: str, status: int, code: str, step: str
) -> None:
    answer = house.call(name, KEY)
    assert (answer.status, answer.code) == (status, code)
    story = house.recorded(name, answer)
    assert (story["status"], story["code"], story["body"]) == ("rejected", code, "")
    assert [(one["step"], one["ok"]) for one in story["trace"]] == [(step, False)]


def test_a_body_over_the_limit_is_rejected_before_the_token_is_looked_at(house: House) -> None:
    answer = house.call("small", body=b"x" * 101)
    assert (answer.status, answer.code) == (413, "payload_too_large")
    assert house.recorded("small", answer)["code"] == "payload_too_large"


def test_more_calls_than_the_rate_allows_are_sent_away_for_a_while(house: House) -> None:
    replies = [house.call("slow", KEY) for _ in range(5)]
    assert [answer.status for answer in replies] == [200, 200, 200, 429, 429]
    assert replies[-1].code == "rate_limited"
    assert 1 <= int(replies[-1].headers["retry-after"]) <= 101
    assert house.recorded("slow", replies[-1])["trace"][-1]["step"] == "rate limit"


def test_whoever_guesses_tokens_hears_why_each_is_rejected(house: House) -> None:
    replies = [house.call("guessed", ("X-Api-Key", f"guess {number}")) for number in range(60)]
    assert {(answer.status, answer.code) for answer in replies} == {(401, "credential_mismatch")}
    assert len({answer.headers["x-invocation-id"] for answer in replies}) == 60
    assert len(house.stories("guessed")) == 60


def test_a_call_that_was_seen_before_is_a_duplicate_of_the_first(house: House) -> None:
    first, again, other = (
        house.call("once", KEY, ("X-Event-Id", event)) for event in ("evt_1", "evt_1", "evt_2")
    )
    assert (again.status, again.json) == (
        200,
        {"status": "duplicate", "invocationId": first.json["invocationId"]},
    )
    assert other.json["status"] == "accepted"
    newest = house.stories("once")
    assert [story["status"] for story in newest] == ["accepted", "duplicate", "accepted"]
    assert newest[1]["duplicateOf"] == first.json["invocationId"]
    assert newest[1]["deliveries"] == []


def test_a_duplicate_key_is_claimed_by_calls_that_prove_themselves_only(house: House) -> None:
    event = ("X-Event-Id", "evt_stolen")
    assert house.call("once", event).status == 401
    assert house.call("once", KEY, event).json["status"] == "accepted"


# --- what all calls have in common -----------------------------------------------------------------------------------


def test_every_call_to_a_known_webhook_is_one_invocation_and_one_log_line(house: House) -> None:
    def lines() -> int:
        return house.program.output().count(f'"webhook":"{house.webhooks["open"].id}"')

    before, lines_before = len(house.stories("open")), lines()
    answers = [
        house.call("open"),
        house.call("open", method="DELETE"),
        house.call("open", body=b"["),
        house.call("open", kind="image/png"),
    ]
    assert [answer.status for answer in answers] == [200, 405, 400, 415]
    assert len(house.stories("open")) == before + 4
    wait_until(lambda: lines() == lines_before + 4, what="a log line for each call")


def test_matches_are_counted_for_each_secret(house: House) -> None:
    for token in (TOKEN, SECOND_TOKEN, SECOND_TOKEN, "wrong"):
        house.call("header", ("X-Shop-Secret", token))
    listed = within(
        house.data_dir, lambda gateway: webhooks.show(gateway, OWNER, house.webhooks["header"].id)
    )
    in_history = house.stories("header")
    uses = listed.authentication
    assert uses.token_use.match_count == sum(story["matched"] == "main" for story in in_history)
    assert uses.second_token_use.match_count == sum(story["matched"] == "second" for story in in_history)
    assert listed.call_count == len(in_history)


def test_when_the_store_refuses_the_caller_is_asked_to_come_again(
    tmp_path: Path, start_program: StartProgram
) -> None:
    webhook = make_webhook(tmp_path / "data")
    program = start_program(POSTERN_ENGINE="none")
    other = sqlite3.connect(tmp_path / "data" / "postern.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    rejected = exchange(program.port, "POST", webhook.path, [KEY, JSON], BODY)
    assert (rejected.status, rejected.code) == (503, "temporarily_unavailable")
    assert int(rejected.headers["retry-after"]) >= 1
    other.execute("ROLLBACK")
    other.close()
    accepted = exchange(program.port, "POST", webhook.path, [KEY, JSON], BODY)
    assert accepted.status == 200
    assert [story["id"] for story in stories(tmp_path / "data", webhook)] == [accepted.json["invocationId"]]
