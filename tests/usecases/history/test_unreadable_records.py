"""Whatever bytes stand in the record of a call, nothing that goes through many calls stops at it."""

from functools import partial
from pathlib import Path

import pytest

from postern.core.history.invocation import HistoryFilter
from postern.core.problems import Refused
from postern.usecases.calls import readmission
from postern.usecases.deliveries import replays
from postern.usecases.history import comparing, editing, findable, fixtures, history, samples
from postern.usecases.operations import export, retention
from postern.usecases.signatures import signatures
from support.clock import later
from support.house import OWNER, House
from support.unreadable import write_anything

READS_BODY = {
    "method": "hmac",
    "provider": "custom",
    "secret": "a secret of the tests",
    "scheme": {"signature": "header:X-Signature", "signedContent": "{bodyfield:a.b}{query:token}"},
}
CALLS = 8
ANY = HistoryFilter()


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_that_goes_through_many_calls_stops_at_one(
    house: House, tmp_path: Path, seed: int
) -> None:
    gateway = house.gateway
    started = await house.webhook(fieldMapping={"fieldOne": "n", "fieldTwo": "a[0].b"})
    rejected = await house.webhook(authentication=READS_BODY)
    await samples.arm(gateway, OWNER)
    ids = [await house.recorded(started, b'{"n":"%d"}' % number) for number in range(CALLS)]
    await editing.replay_edited(gateway, OWNER, ids[0], body="{}")
    for _ in range(CALLS):
        await house.call(rejected, b'{"a":{"b":1}}')
    file = tmp_path / "data" / "postern.db"
    write_anything(file, seed)

    last = await house.recorded(started, b'{"n":"the last"}')
    await house.deliver()
    later(gateway, 10)
    while await findable.step(gateway):
        pass
    assert await house.found(value="the last") == [last]
    write_anything(file, seed + 1000)  # also what has been started, and is found

    await samples.payload_types(gateway, OWNER, started.id)
    plan = await replays.plan(gateway, OWNER, HistoryFilter(webhook_id=started.id), include_completed=True)
    await replays.begin(gateway, OWNER, plan.id, "current")
    now = await gateway.store.replays.claim(gateway.clock(), 30.0)
    while now is not None:
        now = await replays.step(gateway, now)
    await house.deliver()
    await readmission.recheck(gateway, OWNER, rejected.id)
    await readmission.admit_all(gateway, OWNER, rejected.id)
    for wanted in (
        ANY,
        HistoryFilter(search="the last"),
        HistoryFilter(field="n=the last"),
        HistoryFilter(header="x=1"),
    ):
        await history.listing(gateway, OWNER, wanted, 200)
        await history.count(gateway, OWNER, wanted)
    calls = (await history.listing(gateway, OWNER, ANY, 200)).items
    assert len(calls) >= 2 * CALLS + 2
    for call in calls:
        await history.show(gateway, OWNER, call.id)
        for asked in (
            history.replay, history.request, history.as_code, partial(history.as_code, language="python"),
            fixtures.fixture, comparing.compared, signatures.explain, samples.workflow_of_call,
            partial(history.preview, paths={"field_one": "n"}), partial(comparing.compared, to=ids[0] if call.id == last else last),
        ):  # fmt: skip
            try:
                await asked(gateway, OWNER, call.id)
            except Refused as refusal:
                assert refusal.code in ("conflict", "not_found"), (asked, refusal)
    lines: list[bytes] = []
    await export.everything(gateway, OWNER, lines.append)
    assert b'"end"' in lines[-1]
    await house.deliver()  # what waits to be started is kept
    later(gateway, 400 * 86_400)
    await retention.prune(gateway, OWNER)
    assert not (await history.listing(gateway, OWNER, ANY)).items
