"""Whatever changes something leaves a note of who did it. A new use case is in one of the two lists, or a
test fails."""

import hmac
import itertools
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from reference import use_cases

from postern.core.access.accounts import Actor
from postern.core.history.invocation import HistoryFilter
from postern.core.problems import FetchTrouble, Refused
from postern.core.webhooks.announced import Announcement
from postern.usecases import schedules
from postern.usecases.access import accounts, audit
from postern.usecases.calls import readmission
from postern.usecases.deliveries import holds, replays
from postern.usecases.history import editing, history, marks, samples, saved_views
from postern.usecases.listeners import listeners
from postern.usecases.listeners.listeners import EnterRequest
from postern.usecases.operations import retention, settings
from postern.usecases.shapes import validated
from postern.usecases.signatures import remedies, sending
from postern.usecases.signatures.sending import SendRequest
from postern.usecases.webhooks import as_code, bin, many, webhooks
from postern.usecases.webhooks.many import ManyRequest
from postern.usecases.webhooks.requests import WebhookRequest
from support.house import House

WHO = Actor("the auditor's friend", "admin", "usr_1", "ses_1")

ONLY_READ = {
    "bin.listing",
    *(
        "accounts.keys",
        "accounts.sessions",
        "accounts.user",
        "accounts.users",
        "audit.listing",
        "as_code.export",
        "readiness.status",
        "export.everything",
    ),
    *(
        "engine.runs",
        "engine.state",
        "engine.workflows",
        "remedies.effects",
        "history.as_code",
        "listing.folders",
        "listing.page",
        "listing.with_own_retention",
        "many.effects",
        "picking.choices",
        "picking.meant",
        "picking.names",
        "picking.one",
        "comparing.compared",
        "retention.kept_until",
        "fixtures.fixture",
        "history.failures",
        "history.listing",
        "history.preview",
        "trying.duplicate_key",
        "history.request",
        "history.show",
        "findable.behind",
        "payload_types.payload_types",
        "history.count",
        "history.oldest",
        "saved_views.listing",
        "live.follow",
        "live.watch",
        "listeners.answer",
        "listeners.ask",
        "listeners.listing",
    ),
    *(
        "readmission.may_pass",
        "readmission.recheck",
        "replays.listing",
        "replays.show",
        "retention.last",
        "retention.plan",
        "samples.new_workflow",
        "samples.sample",
        "samples.workflow_of_call",
    ),
    *(
        "export.everything",
        "settings.in_force",
        "sending.samples",
        "signatures.explain",
        "signatures.propose",
        "signatures.provider",
        "signatures.providers",
        "signatures.test",
    ),
    *("volumes.chart", "volumes.last_day", "listing.listing", "webhooks.show"),
    "idempotency.once",  # what it is asked to do leaves the note
}

NUMBERS = itertools.count()

Deed = Callable[[], Awaitable[Any]]
Prepared = Callable[["Stage"], Awaitable[Deed]]
CHANGES: dict[str, Prepared] = {}


class Stage:
    """A gateway with one webhook, and the short ways to what a use case needs before it can be asked."""

    def __init__(self, house: House, webhook: dict[str, Any]) -> None:
        self.house, self.gateway, self.webhook, self.id = house, house.gateway, webhook, str(webhook.id)

    async def accepted(self) -> str:
        return str((await self.house.call(self.webhook, b'{"n": 1}')).json["invocationId"])

    async def rejected(self) -> str:
        """Not JSON by what it says it is, until the webhook is told that it is the method that was wrong."""
        signed = {"method": "hmac", "provider": "linear", "secret": "a secret for signing"}
        other = await self.house.webhook(name="Signed", authentication=signed)
        made = hmac.new(b"a secret for signing", b"{}", sha256).hexdigest()
        assert (await self.house.call(other, headers={"X-Hub-Signature-256": f"sha256={made}"})).status == 401
        (found,) = await self.house.history(webhook_id=other.id)
        return str(found.id)

    async def recorded(self) -> None:
        await samples.arm(self.gateway, WHO, self.id)
        await self.accepted()

    async def planned(self) -> str:
        return str((await replays.plan(self.gateway, WHO, HistoryFilter())).id)

    async def user(self) -> str:
        name = f"user {next(NUMBERS)}"
        return str(
            (await accounts.create_user(self.gateway, WHO, name, "a long enough password", "admin")).id
        )

    async def scheduled(self) -> str:
        """Its source is where nobody may fetch from, so that one run pauses it."""
        schedule = {"url": "http://127.0.0.2:9/", "every": 60, "pauseAfterFailures": 1}
        return str((await self.house.webhook(name="Scheduled", schedule=schedule)).id)


def changes(name: str) -> Callable[[Prepared], Prepared]:
    def enter(prepared: Prepared) -> Prepared:
        CHANGES[name] = prepared
        return prepared

    return enter


def simple(name: str, deed: Callable[[Stage], Awaitable[Any]]) -> None:
    """Nothing has to be there before."""

    async def prepared(stage: Stage) -> Deed:
        return lambda: deed(stage)

    CHANGES[name] = prepared


simple("accounts.create_key", lambda on: accounts.create_key(on.gateway, WHO, "a key", "read"))
simple("accounts.create_user", lambda on: on.user())
simple("holds.hold", lambda on: holds.hold(on.gateway, WHO, on.id))
simple("holds.drop", lambda on: holds.drop(on.gateway, WHO, on.id))
simple("replays.plan", lambda on: on.planned())
simple("saved_views.save", lambda on: saved_views.save(on.gateway, WHO, "Mine", "status=failed"))
simple("retention.prune", lambda on: retention.prune(on.gateway, WHO))
simple("samples.arm", lambda on: samples.arm(on.gateway, WHO, on.id))
simple("samples.disarm", lambda on: samples.disarm(on.gateway, WHO))
simple("settings.rotate_key", lambda on: settings.rotate_key(on.gateway, WHO))
simple("webhooks.change", lambda on: webhooks.change(on.gateway, WHO, on.id, {"name": "Other"}))
simple(
    "many.change", lambda on: many.change(on.gateway, WHO, ManyRequest(action="hold", webhook_ids=[on.id]))
)
simple("webhooks.switch", lambda on: webhooks.switch(on.gateway, WHO, on.id, False))
simple("webhooks.remove", lambda on: webhooks.remove(on.gateway, WHO, on.id))


async def to_answer(stage: Stage) -> EnterRequest:
    waits = {"enabled": True, "timeoutSeconds": 5}
    one = await stage.house.webhook(name=f"Waits {next(NUMBERS)}", synchronousResponse=waits)
    return EnterRequest(name="ada@laptop", answers=one.id)


async def answering(stage: Stage) -> str:
    return str((await listeners.enter(stage.gateway, WHO, await to_answer(stage))).id)


def given(
    name: str, before: Callable[[Stage], Awaitable[Any]], deed: Callable[[Stage, Any], Awaitable[Any]]
) -> None:
    """``deed`` is given what was there ``before``."""

    async def prepared(stage: Stage) -> Deed:
        what = await before(stage)
        return lambda: deed(stage, what)

    CHANGES[name] = prepared


async def saved(stage: Stage) -> str:
    return (await saved_views.save(stage.gateway, WHO, "Mine", "")).id


async def in_the_bin(stage: Stage) -> str:
    await webhooks.remove(stage.gateway, WHO, stage.id)
    return stage.id


async def with_a_token(stage: Stage) -> str:
    how = {"method": "token", "token": "first-first", "secondToken": "second-second"}
    return str((await stage.house.webhook(name="Two tokens", authentication=how)).id)


async def held(stage: Stage) -> str:
    await holds.hold(stage.gateway, WHO, stage.id)
    return stage.id


async def two_users(stage: Stage) -> str:
    """Who is left may not be nobody."""
    one, _ = await stage.user(), await stage.user()
    return one


given("listeners.enter", to_answer, lambda on, wanted: listeners.enter(on.gateway, WHO, wanted))
given("listeners.end", answering, lambda on, listener: listeners.end(on.gateway, WHO, listener))
given("saved_views.rename", saved, lambda on, view: saved_views.rename(on.gateway, WHO, view, "Theirs"))
given("saved_views.delete", saved, lambda on, view: saved_views.delete(on.gateway, WHO, view))
given("bin.restore", in_the_bin, lambda on, webhook: bin.restore(on.gateway, WHO, webhook))
given("bin.delete_for_good", in_the_bin, lambda on, webhook: bin.delete_for_good(on.gateway, WHO, webhook))
given("webhooks.promote", with_a_token, lambda on, webhook: webhooks.promote(on.gateway, WHO, webhook))
given("webhooks.reveal", with_a_token, lambda on, webhook: webhooks.reveal(on.gateway, WHO, webhook))
given("holds.release", held, lambda on, webhook: holds.release(on.gateway, WHO, webhook))
given(
    "editing.replay_edited",
    Stage.accepted,
    lambda on, call: editing.replay_edited(on.gateway, WHO, call, "{}"),
)
given("marks.bookmark", Stage.accepted, lambda on, call: marks.bookmark(on.gateway, WHO, call))
given("marks.add_note", Stage.accepted, lambda on, call: marks.add_note(on.gateway, WHO, call, "A note."))
given("history.replay", Stage.accepted, lambda on, call: history.replay(on.gateway, WHO, call))
given("replays.begin", Stage.planned, lambda on, plan: replays.begin(on.gateway, WHO, plan))
given("replays.cancel", Stage.planned, lambda on, plan: replays.cancel(on.gateway, WHO, plan))
given("remedies.apply", Stage.rejected, lambda on, call: remedies.apply(on.gateway, WHO, call, 0))
given("samples.forget", Stage.recorded, lambda on, _: samples.forget(on.gateway, WHO, on.id))
given("schedules.run_now", Stage.scheduled, lambda on, webhook: schedules.run_now(on.gateway, WHO, webhook))
given(
    "accounts.change_user",
    two_users,
    lambda on, user: accounts.change_user(on.gateway, WHO, user, level="read"),
)
given("accounts.delete_user", two_users, lambda on, user: accounts.delete_user(on.gateway, WHO, user))


@changes("listeners.replay")
async def replay_to_listener(stage: Stage) -> Deed:
    listener, invocation = await answering(stage), await stage.accepted()
    return lambda: listeners.replay(stage.gateway, WHO, listener, invocation)


@changes("webhooks.create")
async def create(stage: Stage) -> Deed:
    request: WebhookRequest = validated(WebhookRequest, {"name": "New", "authentication": {"method": "none"}})
    return lambda: webhooks.create(stage.gateway, WHO, request)


@changes("webhooks.adopt")
async def adopt(stage: Stage) -> Deed:
    how = {"method": "hmac", "provider": "generic", "secret": "a secret for signing"}
    one = await stage.house.webhook(name="Announced", authentication=how)
    said = Announcement("inv_1", stage.gateway.clock(), "192.0.2.1", b"what the sender announced")
    await stage.gateway.store.webhooks.announce(one.id, said)
    return lambda: webhooks.adopt(stage.gateway, WHO, one.id)


@changes("as_code.apply")
async def apply(stage: Stage) -> Deed:
    document = {"version": 1, "webhooks": [{"name": "From a file", "authentication": {"method": "none"}}]}
    return lambda: as_code.apply(stage.gateway, WHO, document, lambda *_: None)


@changes("marks.remove_bookmark")
async def remove_bookmark(stage: Stage) -> Deed:
    invocation = await stage.accepted()
    await marks.bookmark(stage.gateway, WHO, invocation)
    return lambda: marks.remove_bookmark(stage.gateway, WHO, invocation)


@changes("marks.delete_note")
async def delete_note(stage: Stage) -> Deed:
    invocation = await stage.accepted()
    note = await marks.add_note(stage.gateway, WHO, invocation, "A note.")
    return lambda: marks.delete_note(stage.gateway, WHO, invocation, note.id)


@changes("readmission.admit")
async def admit(stage: Stage) -> Deed:
    invocation = await stage.rejected()
    await remedies.apply(stage.gateway, WHO, invocation, 0)
    return lambda: readmission.admit(stage.gateway, WHO, [invocation])


@changes("readmission.admit_all")
async def admit_all(stage: Stage) -> Deed:
    fixed = await remedies.apply(stage.gateway, WHO, await stage.rejected(), 0)
    return lambda: readmission.admit_all(stage.gateway, WHO, fixed.id)


@changes("schedules.resume")
async def resume(stage: Stage) -> Deed:
    one = await stage.scheduled()
    assert (await schedules.run_now(stage.gateway, WHO, one)).paused
    return lambda: schedules.resume(stage.gateway, WHO, one)


@changes("accounts.delete_key")
async def delete_key(stage: Stage) -> Deed:
    key = await accounts.create_key(stage.gateway, WHO, "a key", "read")
    return lambda: accounts.delete_key(stage.gateway, WHO, key.id)


@changes("sending.send")
async def send_a_test_call(stage: Stage) -> Deed:
    async def nobody(target: str, **_: Any) -> Any:
        raise FetchTrouble("nobody is there")

    async def sent() -> None:
        with suppress(Refused):  # noted before it is sent
            await sending.send(stage.gateway, WHO, stage.id, SendRequest())

    stage.gateway.outbound.call_own = nobody
    return sent


@changes("accounts.change_own_password")
async def change_own_password(stage: Stage) -> Deed:
    me = Actor(WHO.name, "admin", await stage.user(), "ses_1")
    return lambda: accounts.change_own_password(
        stage.gateway, me, "a long enough password", "another long password"
    )


@changes("accounts.revoke_session")
async def revoke_session(stage: Stage) -> Deed:
    user = await accounts.user(stage.gateway, WHO, await stage.user())
    await accounts.sign_in(stage.gateway, user.name, "a long enough password", "203.0.113.9")
    (session,) = await accounts.sessions(stage.gateway, WHO)
    return lambda: accounts.revoke_session(stage.gateway, WHO, session.id)


def test_every_use_case_leaves_a_note_or_only_reads() -> None:
    every = {name for name, _, _ in use_cases()}
    assert every == CHANGES.keys() | ONLY_READ and not CHANGES.keys() & ONLY_READ


async def test_what_changes_something_says_who_did_it(house: House, tmp_path: Path) -> None:
    found = {}
    for name, prepared in CHANGES.items():
        house.gateway.workflow_files.path = tmp_path / name
        deed = await prepared(Stage(house, await house.webhook()))
        before = await notes(house)
        await deed()
        new = [note for note in await notes(house) if note not in before]
        found[name] = {(note.actor, bool(note.action and note.subject)) for note in new}
        assert "password" not in json.dumps([note.changes for note in new]).replace(
            '"password": "set"', ""
        ), name
    assert found == {name: {(WHO.name, True)} for name in CHANGES}


async def notes(house: House) -> list[dict[str, Any]]:
    return (await audit.listing(house.gateway, WHO, 50)).items


async def test_what_happens_by_itself_leaves_none(house: House) -> None:
    before = await notes(house)
    house.gateway.clock = lambda now=house.gateway.clock(): now + 3600  # type: ignore[misc]
    await retention.RetentionLoop(house.gateway).round()
    assert await notes(house) == before
    assert (await history.listing(house.gateway, WHO, HistoryFilter())).items == []


def test_a_note_has_every_field_that_differs_and_of_a_long_value_its_beginning() -> None:
    before = {"same": 1, "gone": "a", "in": {"deep": {"x": 1}, "same": 2}, "long": "o" * 500}
    after = {"same": 1, "new": None, "in": {"deep": {"x": 2}, "same": 2}, "long": "n" * 501}
    assert audit.differences(before, after) == {
        "gone": {"before": "a", "after": None},
        "in.deep.x": {"before": 1, "after": 2},
        "long": {"before": "o" * 500, "after": "n" * 500 + "…"},
    }
