"""An export reads calls together, and what it tells of each is what the API tells."""

import base64
import json
from pathlib import Path

import pytest

from postern.usecases.answers import as_plain
from postern.usecases.history import editing, history, marks
from postern.usecases.listeners import listeners
from postern.usecases.operations import export
from support.house import OWNER, a_house


@pytest.mark.parametrize("most_at_once", [1, 60, 8 * 1024 * 1024])
async def test_a_line_says_of_a_call_what_the_api_says_however_many_are_read_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_at_once: int
) -> None:
    monkeypatch.setattr(export, "MOST_AT_ONCE", most_at_once)
    written: list[bytes] = []
    async with a_house(tmp_path) as house:
        webhook = await house.webhook()
        calls = []
        for body in (b'{"n":1}', b'{"n":2,"text":"' + b"x" * 50 + b'"}', b"no object", b'{"n":4}'):
            await house.call(webhook, body)
            calls.append((await house.history())[0].id)
        await house.deliver()
        first, second = calls[:2]
        for text in ("Asked the shop.", "Answered."):
            await marks.add_note(house.gateway, OWNER, first, text)
        await marks.bookmark(house.gateway, OWNER, second)
        await editing.replay_edited(house.gateway, OWNER, second, body='{"n":3}')
        desk = await listeners.enter(house.gateway, OWNER, listeners.EnterRequest(name="desk"), "192.0.2.7")
        await listeners.replay(house.gateway, OWNER, desk.id, first)
        await export.everything(house.gateway, OWNER, written.append)
        lines = [json.loads(line) for line in b"".join(written).splitlines()]
        exported = {line.pop("id"): line for line in lines if line.pop("kind") == "call"}
        assert len(exported) == 5
        for id, line in exported.items():
            shown = as_plain(await history.show(house.gateway, OWNER, id))
            del shown["id"], shown["payload"]
            body = shown.pop("body")
            assert base64.b64decode(line.pop("bodyBase64")).decode() == body
            assert line == shown
    assert [note["text"] for note in exported[first]["notes"]] == ["Asked the shop.", "Answered."]
    assert (len(exported[first]["localRuns"]), len(exported[second]["editedReplays"])) == (1, 1)
    assert exported[second]["bookmark"] is not None
