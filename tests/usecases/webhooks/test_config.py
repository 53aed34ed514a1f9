"""Configuration as code: what is exported can be applied, what is applied once needs nothing more, and
secrets stay references."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from postern.core.problems import Refused
from postern.core.webhooks.listing import WebhookFilter
from postern.core.webhooks.stored import StoredWebhook
from postern.usecases.access import audit
from postern.usecases.answers import as_plain
from postern.usecases.webhooks import as_code, listing, webhooks
from support.house import OWNER, House, a_house
from support.refusals import fields_refused, refused

SECRETS = {
    ("env", "ORDERS_TOKEN"): "orders-token-0123456789",
    ("env", "ORDERS_SECOND_TOKEN"): "orders-second-0123456789",
    ("file", "stripe.txt"): "whsec_stripe0123456789",
    ("env", "POLL_KEY"): "Bearer poll-0123456789",
}
DOCUMENT: dict[str, Any] = {
    "version": 1,
    "webhooks": [
        {
            "name": "Orders",
            "authentication": {
                "method": "token",
                "token": {"env": "ORDERS_TOKEN"},
                "secondToken": {"env": "ORDERS_SECOND_TOKEN"},
            },
            "fieldMapping": {"fieldOne": "order.number"},
        },
        {
            "name": "Payments",
            "authentication": {"method": "hmac", "provider": "stripe", "secret": {"file": "stripe.txt"}},
        },
        {
            "name": "Poll",
            "enabled": False,
            "authentication": {"method": "token", "placement": "bearer", "token": {"generate": True}},
            "schedule": {
                "url": "https://example.com/orders",
                "every": "15m",
                "headers": {"Authorization": {"env": "POLL_KEY"}},
            },
        },
    ],
}


def secret_of(kind: str, where: str) -> str | None:
    return SECRETS.get((kind, where))


def nothing(kind: str, where: str) -> str | None:
    return None


async def apply(
    house: House, document: Any, secrets: Callable[[str, str], str | None] = secret_of, **options: bool
) -> dict[str, Any]:
    done: dict[str, Any] = as_plain(await as_code.apply(house.gateway, OWNER, document, secrets, **options))
    return done


async def export(house: House) -> dict[str, Any]:
    exported: dict[str, Any] = as_plain(await as_code.export(house.gateway, OWNER))
    return exported


def edited(**settings: Any) -> dict[str, Any]:
    """The document with the first webhook's settings changed."""
    first, *others = DOCUMENT["webhooks"]
    return {"version": 1, "webhooks": [{**first, **settings}, *others]}


async def rows(house: House) -> list[tuple[str, int, dict[str, bytes]]]:
    found = await house.gateway.store.webhooks.page(50)
    return sorted(
        (one.name, one.version, {name: secret.value for name, secret in one.secrets.items()}) for one in found
    )


async def test_a_file_makes_what_it_says_and_its_export_needs_no_secret_at_hand(house: House) -> None:
    done = await apply(house, DOCUMENT)
    changes = [(one["action"], one["name"]) for one in done["changes"]]
    assert changes == [("create", name) for name in ("Orders", "Payments", "Poll")]
    orders, payments, poll = [secrets for _, _, secrets in await rows(house)]
    assert orders == {"main": b"orders-token-0123456789", "second": b"orders-second-0123456789"}
    assert payments == {"main": b"whsec_stripe0123456789"}
    assert poll["header:authorization"] == b"Bearer poll-0123456789" and poll["main"].startswith(b"whk_")
    exported = yaml.safe_load(yaml.safe_dump(await export(house)))
    done = await apply(house, exported, nothing)
    assert (done["changes"], len(done["notes"])) == ([], 5)
    # Another secret is a change that does not tell it.
    rotated = {**SECRETS, ("env", "ORDERS_TOKEN"): "rotated-0123456789"}
    (change,) = (await apply(house, DOCUMENT, lambda kind, where: rotated.get((kind, where))))["changes"]
    assert change["differences"] == {"secret main": {"before": "set", "after": "another"}}
    assert (await rows(house))[0][2]["main"] == b"rotated-0123456789"


async def test_an_export_makes_the_same_webhooks_somewhere_else(house: House) -> None:
    await apply(house, DOCUMENT)
    exported = await export(house)
    for one in exported["webhooks"]:
        await webhooks.remove(house.gateway, OWNER, one["id"])
    await apply(house, exported, lambda kind, where: f"value of {where}")
    again = await export(house)
    for one in (*again["webhooks"], *exported["webhooks"]):
        del one["id"], one["shortCode"]
    assert again["webhooks"] == exported["webhooks"]


async def test_only_what_differs_is_changed_and_what_is_left_out_has_its_default(house: House) -> None:
    await apply(house, edited(ipAllowlist=["203.0.113.0/24"]))
    done = await apply(house, edited(fieldMapping={"fieldOne": "order.id"}))
    (change,) = done["changes"]
    assert (change["action"], change["name"]) == ("change", "Orders")
    assert change["differences"] == {
        "fieldMapping.fieldOne": {"before": "order.number", "after": "order.id"},
        "ipAllowlist": {"before": ["203.0.113.0/24"], "after": []},
    }


async def test_what_the_file_does_not_name_stays_unless_it_is_to_be_pruned(house: House) -> None:
    other = await house.webhook(name="Other")
    assert [one["name"] for one in (await apply(house, DOCUMENT))["notNamed"]] == ["Other"]
    done = await apply(house, DOCUMENT, prune=True)
    assert [(one["action"], one["id"]) for one in done["changes"]] == [("delete", other.id)]
    assert [row[0] for row in await rows(house)] == ["Orders", "Payments", "Poll"]


async def wrong_in(
    house: House, document: Any, secrets: Callable[[str, str], str | None] = secret_of
) -> dict[str, str]:
    wrong = await fields_refused(apply(house, document, secrets))
    assert await rows(house) == [], "something was changed although it was refused"
    return wrong


async def test_one_mistake_anywhere_and_nothing_is_changed(house: House) -> None:
    bad = edited(ipAllowlist=["nowhere"])
    unknown = {"method": "hmac", "provider": "acme", "secret": {"env": "NOT_THERE"}}
    bad["webhooks"][1] = {"name": "Payments", "authentication": unknown}
    assert set(await wrong_in(house, bad)) == {
        "webhooks.0.ipAllowlist.0", "webhooks.1.authentication.provider", "webhooks.1.authentication.secret"
    }  # fmt: skip


async def test_a_new_webhook_whose_secret_is_not_there_is_refused(house: House) -> None:
    assert await wrong_in(house, DOCUMENT, nothing) == {
        "webhooks.0.authentication.token": "ORDERS_TOKEN is not set in the environment",
        "webhooks.0.authentication.secondToken": "ORDERS_SECOND_TOKEN is not set in the environment",
        "webhooks.1.authentication.secret": "stripe.txt is not there or cannot be read",
        "webhooks.2.schedule.headers.Authorization": "POLL_KEY is not set in the environment",
    }


async def test_webhooks_of_one_name_go_through_a_file_to_another_gateway(
    house: House, tmp_path: Path
) -> None:
    """Each client of an agency has an "Orders". Applied again, the file finds each of them by the id it brought."""
    eu, us = [await house.webhook(fieldMapping={"fieldOne": one}) for one in ("eu", "us")]
    exported = await export(house)
    async with a_house(tmp_path / "other") as other:
        assert len((await apply(other, exported))["changes"]) == 2
        assert [one["id"] for one in (await export(other))["webhooks"]] == [eu.id, us.id]
        assert (await apply(other, exported))["changes"] == []
        exported["webhooks"][1]["fieldMapping"] = {"fieldOne": "another"}
        (change,) = (await apply(other, exported))["changes"]
        assert change["id"] == us.id

        # An id that was given out once stays with its history: deleted and made again, the webhook has another one.
        await webhooks.remove(other.gateway, OWNER, us.id)
        (change,) = (await apply(other, exported))["changes"]
        assert (change["action"], change["id"] == us.id) == ("create", False)
        assert (await apply(other, exported))["changes"] == []


async def test_a_variable_is_called_after_its_webhook_and_what_it_holds(house: House) -> None:
    token = {"method": "token", "token": "a token of the tests"}
    hmac = {"method": "hmac", "secret": "whsec_one", "secondSecret": "whsec_two", "verifyToken": "three"}
    url = {"url": "https://api.example.com/", "every": "15m", "headers": {"X-Api.Key": "four"}}
    for name, settings in (
        ("Shop -- orders!", {"authentication": token | {"secondToken": "another token"}}),
        ("Meta", {"authentication": hmac | {"provider": "meta"}, "schedule": url}),
        ("Postern's own", {"authentication": token}),
        ("2 lives", {"authentication": token}),
    ):
        await house.webhook(name=name, **settings)

    def variables(value: Any) -> list[str]:
        if isinstance(value, dict) and isinstance(value.get("env"), str):
            return [value["env"]]
        within = value.values() if isinstance(value, dict) else ()
        return [found for one in within for found in variables(one)]

    shop, meta, postern, lives = [variables(one) for one in (await export(house))["webhooks"]]
    assert shop == ["SHOP_ORDERS_TOKEN", "SHOP_ORDERS_SECOND_TOKEN"]
    assert (postern, lives) == (["WEBHOOK_POSTERN_S_OWN_TOKEN"], ["WEBHOOK_2_LIVES_TOKEN"])
    assert sorted(meta) == ["META_HEADER_X_API_KEY", "META_SECOND_SECRET", "META_SECRET", "META_VERIFY_TOKEN"]
    twin = await house.webhook(name="2 Lives", authentication=token)
    *_, last = (await export(house))["webhooks"]
    assert variables(last) == [f"WEBHOOK_2_LIVES_TOKEN_{twin.id[-6:].upper()}"]


async def test_an_export_leaves_out_what_has_its_default(house: House) -> None:
    made = await house.webhook()
    off = await house.webhook(name="Off", enabled=False, payloadLimitBytes=10)
    none = {"authentication": {"method": "none"}}
    codes = [{"shortCode": one.url.rpartition("/")[2]} for one in (made, off)]
    assert (await export(house))["webhooks"] == [
        {"name": "Orders", "id": made.id, **codes[0], **none},
        {"name": "Off", "id": off.id, **codes[1], "enabled": False, "payloadLimitBytes": 10, **none},
    ]


async def test_what_is_reported_each_change(house: House) -> None:
    kept, gone = await house.webhook(name="Kept"), await house.webhook(name="Gone")
    none = {"authentication": {"method": "none"}}
    token = {"authentication": {"method": "token", "token": {"env": "ORDERS_TOKEN"}}}
    entries = [{"name": "Kept", "tags": ["eu"], **none}, {"name": "New", **token}]
    document = {"version": 1, "webhooks": entries}
    for dry_run in (True, False):
        done = await apply(house, document, dry_run=dry_run, prune=True)
        new = next((one.id for one in house.gateway.runtime.directory.listed() if one.name == "New"), None)
        assert done["dryRun"] is dry_run and (new is None) is dry_run
        assert [(one["action"], one["id"], one["name"]) for one in done["changes"]] == [
            ("change", kept.id, "Kept"),
            ("create", new, "New"),
            ("delete", gone.id, "Gone"),
        ]
        assert (done["unchanged"], done["notNamed"], done["notes"]) == (0, [], [])
    set_to = {
        "authentication.headerName": "X-Api-Key",
        "authentication.method": "token",
        "authentication.parameterName": "token",
        "authentication.tokenPath": "token",
        "authentication.placement": "header",
        "enabled": True,
        "name": "New",
        "secret main": "set",
    }
    differences = {field: {"before": None, "after": value} for field, value in set_to.items()}
    assert done["changes"][1]["differences"] == differences
    assert done["changes"][2]["differences"] == {}
    again = await apply(house, document)
    assert (again["changes"], again["unchanged"], again["notNamed"]) == ([], 2, [])


async def test_what_a_file_did_is_in_the_audit_log_without_a_secret(house: House) -> None:
    await apply(house, edited(tags=["eu"]))
    document = edited(authentication={"method": "token", "token": {"env": "OTHER"}, "secondToken": None})
    del document["webhooks"][1]
    await apply(house, document, lambda *_: "rotated-0123456789", prune=True)
    deleted, poll, orders, *created = (await audit.listing(house.gateway, OWNER)).items
    assert {one.action for one in created} == {"webhook created"}
    assert [one.changes["name"] for one in created] == ["Poll", "Payments", "Orders"]
    assert created[2].changes == {"name": "Orders", "secret.main": "set", "secret.second": "set"}
    assert (deleted.action, deleted.changes["name"]) == ("webhook deleted", "Payments")
    assert (poll.action, orders.action) == ("webhook changed", "webhook changed")
    assert poll.changes == {"secret.header:authorization": "set"}
    tags = {"tags": {"before": ["eu"], "after": []}}
    assert orders.changes == {"secret.main": "set", "secret.second": "removed", **tags}
    assert "rotated" not in str([one.changes for one in (deleted, poll, orders, *created)])


async def test_what_somebody_else_changed_meanwhile_ends_it_and_says_how_far_it_came(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ABC":
        await house.webhook(name=name)
    update = house.gateway.store.webhooks.update
    times = 0

    async def second_is_too_late(*given: Any) -> bool:
        nonlocal times
        times += 1
        return times != 2 and await update(*given)

    monkeypatch.setattr(house.gateway.store.webhooks, "update", second_is_too_late)
    entries = [{"name": name, "tags": ["eu"], "authentication": {"method": "none"}} for name in "ABC"]
    refusal = await refused(apply(house, {"version": 1, "webhooks": entries}))
    assert refusal.code == "version_conflict"
    assert refusal.detail.startswith("B was changed by somebody else meanwhile; 1 of 3 changes are done")
    found = await listing.listing(house.gateway, OWNER, wanted=WebhookFilter(tag="eu"))
    assert [one.name for one in found.items] == ["A"]
    await apply(house, {"version": 1, "webhooks": entries})
    assert (await listing.listing(house.gateway, OWNER, wanted=WebhookFilter(tag="eu"))).total == 3


async def test_what_somebody_else_makes_meanwhile_is_not_made_twice(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = house.gateway.store.webhooks.create
    made: list[str] = []

    async def somebody_makes_b_before(webhook: StoredWebhook, *given: Any, **known: Any) -> bool:
        made.append(webhook.name)
        if made == ["A", "B"]:
            await house.webhook(name="B")
        return await create(webhook, *given, **known)

    monkeypatch.setattr(house.gateway.store.webhooks, "create", somebody_makes_b_before)
    entries = [{"name": name, "authentication": {"method": "none"}} for name in "ABC"]
    with pytest.raises(Refused, match="B was changed by somebody else meanwhile; 1 of 3 changes are done"):
        await apply(house, {"version": 1, "webhooks": entries})
    await apply(house, {"version": 1, "webhooks": entries})
    found = await listing.listing(house.gateway, OWNER)
    assert sorted(one.name for one in found.items) == ["A", "B", "C"]


async def test_a_new_webhook_keeps_its_url_unless_another_one_has_it(house: House, tmp_path: Path) -> None:
    orders = await house.webhook(name="Orders")
    exported = await export(house)
    code = orders.url.rpartition("/")[2]
    async with a_house(tmp_path / "other") as other:
        assert (await apply(other, exported))["notes"] == []
        assert (await webhooks.show(other.gateway, OWNER, orders.id)).url == orders.url
        assert (await apply(other, exported))["changes"] == []
    (entry,) = exported["webhooks"]

    async def noted(**entry: Any) -> list[str]:
        return list((await apply(house, {"version": 1, "webhooks": [entry]}))["notes"])

    taken = "gets a new URL: another webhook has the one of the file."
    copy = entry | {"id": "wh_elsewhere"}
    assert await noted(**copy | {"name": "Copy"}) == [f"Copy {taken}"]
    assert await noted(**copy | {"shortCode": "A" * 22}) == ["Orders keeps its URL here."]
    await webhooks.remove(house.gateway, OWNER, orders.id)
    assert await noted(**copy | {"name": "Of one in the bin"}) == [f"Of one in the bin {taken}"]
    both = [copy | {"name": one, "shortCode": "B" * 22} for one in ("First", "Second")]
    assert (await apply(house, {"version": 1, "webhooks": both}))["notes"] == [f"Second {taken}"]
    urls = [one.url for one in (await listing.listing(house.gateway, OWNER)).items]
    assert sum(url.endswith("B" * 22) for url in urls) == 1 and not any(url.endswith(code) for url in urls)
    wrong = "is not one that Postern has made; leave it out for a new URL"
    for guessable in ("orders", 7, None, f"{code} "):
        refused_fields = await fields_refused(noted(**entry | {"shortCode": guessable, "more": 1}))
        assert refused_fields == {"webhooks.0.shortCode": wrong, "webhooks.0.more": "is not a known setting"}


async def test_an_id_counts_before_a_name_and_one_that_is_unknown_means_nothing(house: House) -> None:
    one, other = await house.webhook(name="One"), await house.webhook(name="Other")
    none = {"authentication": {"method": "none"}}

    async def changed(*entries: dict[str, Any]) -> list[tuple[str, str]]:
        done = await apply(house, {"version": 1, "webhooks": list(entries)}, dry_run=True)
        return [(change["action"], change["name"]) for change in done["changes"]]

    assert await changed({"id": one.id, "name": "Other again", **none}) == [("change", "Other again")]
    assert await changed({"id": "wh_elsewhere", "name": "Other", **none}) == []
    assert await changed({"id": 7, "name": "New", **none}) == [("create", "New")]
    for twice in (
        ({"name": "One", **none}, {"id": one.id, "name": "Two", **none}),
        ({"id": other.id, "name": "Mine", **none}, {"name": "Mine", **none}),
        ({"name": "New", **none}, {"name": "New", **none}),
    ):
        same = {"webhooks.1.name": "an entry before this one is the same webhook"}
        assert await fields_refused(changed(*twice)) == same
    twin = await house.webhook(name="One")
    (message,) = (await fields_refused(changed({"name": "One", **none}))).values()
    assert one.id in message and twin.id in message, "which one it is has to be said"
    # Their names change places: nothing of it is the same webhook twice.
    swapped = ({"id": one.id, "name": "Other", **none}, {"id": other.id, "name": "One", **none})
    assert len(await changed(*swapped)) == 2


async def test_what_a_file_may_not_have_is_named_by_its_place(house: House) -> None:
    good = {"name": "Good", "authentication": {"method": "none"}}
    no_webhook, unknown = "is no webhook: write its name and its settings", "is not known here"
    for document, wrong in (
        ({"webhooks": [], "webhook": [], 7: 8}, {"webhook": unknown, "7": unknown}),
        ({"webhooks": {}, "more": 1}, {"webhooks": "is a list of webhooks", "more": unknown}),
        ({"webhooks": [good, 5, good, None]}, {"webhooks.1": no_webhook, "webhooks.3": no_webhook}),
        ({"version": "1", "webhooks": []}, {"version": "write version: 1 at the top"}),
    ):
        assert await wrong_in(house, {"version": 1, **document}) == wrong
    expected = "write {env: NAME} or {file: PATH}: a secret itself does not belong here"
    of_two = {"env": "A", "file": "b"}
    for reference in ("sw0rdfish", "", 7, [], {}, {"env": ""}, {"env": 7}, of_two, {"vault": "a"}):
        errors = await wrong_in(house, edited(authentication={"method": "token", "token": reference}))
        assert errors == {"webhooks.0.authentication.token": expected}, reference
    refusal = await refused(apply(house, {"version": 1, "webhooks": [{}]}))
    assert refusal.detail == "Nothing was changed: the configuration is not valid."


async def test_what_only_the_stored_webhook_shows_to_be_wrong_is_told_with_the_rest(house: House) -> None:
    await apply(house, DOCUMENT)
    change = edited(tags=[""], sendAgain={"account": "repos/a/b"})
    errors = await fields_refused(apply(house, change))
    assert sorted(errors) == ["webhooks.0.sendAgain.token", "webhooks.0.tags.0"]
