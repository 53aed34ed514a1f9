"""What differs between two calls is told by name, by path and by line, and never invented."""

import tracemalloc
from typing import Any

import msgspec
import pytest

from postern.core.history import compare
from postern.core.problems import Refused
from postern.usecases.calls.respond import report_end
from postern.usecases.history import comparing
from support.house import OWNER, House
from support.refusals import refused


def documents(before: str, after: str) -> list[tuple[str, str, str | None, str | None]]:
    found = compare.documents(compare.read(before.encode()), compare.read(after.encode()))
    return [(one.place, one.kind, one.before, one.after) for one in found.items]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', []),
        ('{"a": 10.00}', '{"a": 10.0}', [("a", "changed", "10.00", "10.0")]),
        ('{"a": 1}', '{"a": "1"}', [("a", "changed", "1", '"1"')]),
        ('{"a": {"b": 1}}', '{"a": {}}', [("a.b", "removed", "1", None)]),
        ('{"a": [1, 2]}', '{"a": [1, 3, 4]}', [("a[1]", "changed", "2", "3"), ("a[2]", "added", None, "4")]),
        ('{"a.b": {"c": true}}', '{"a.b": {"c": false}}', [("a\\.b.c", "changed", "true", "false")]),
        ('{"a": null}', "{}", [("a", "removed", "null", None)]),
        ('{"a": true}', '{"a": 1}', [("a", "changed", "true", "1")]),
        ("[1]", '{"a": 1}', [("(all of it)", "changed", "[1]", '{"a": 1}')]),
        (
            r'{"\ud83d": "\ud83d", "b": 1}',
            r'{"\ud83d": "\ude00"}',
            [(r"\ud83d", "changed", r'"\ud83d"', r'"\ude00"'), ("b", "removed", "1", None)],
        ),
    ],
)
def test_json_is_compared_by_path(before: str, after: str, expected: list[Any]) -> None:
    assert documents(before, after) == expected


def test_a_very_long_key_is_not_repeated_for_each_value_below_it() -> None:
    key = "k" * 200_000
    before, after = ({key: {"list": [[step] * 200 for _ in range(20)]}} for step in (1, 2))
    tracemalloc.start()
    found = compare.documents(before, after)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.count == 4_000 and len(found.items) == compare.MOST_DIFFERENCES
    assert {len(one.place) for one in found.items} == {compare.LONGEST_TEXT}
    assert most < 20_000_000


def test_text_is_compared_by_line_and_much_of_it_is_counted() -> None:
    found = compare.lines("a\nb\nc\nd", "a\nB\nc\nd\ne")
    assert found is not None
    assert [(one.place, one.before, one.after) for one in found.items] == [
        ("line 2", "b", "B"),
        ("line 5", None, "e"),
    ]
    first = compare.lines("a\nb\nb", "A\nb\nb")
    assert first is not None and [(one.place, one.kind) for one in first.items] == [("line 1", "changed")]
    same = compare.lines("a\na", "a")
    assert same is not None and [(one.place, one.kind) for one in same.items] == [("line 2", "removed")]
    assert compare.lines("\n".join(map(str, range(1000))), "\n".join(map(str, range(1, 2000, 2)))) is None
    many = compare.documents(dict.fromkeys(map(str, range(1000)), "x"), {})
    assert (many.count, len(many.items)) == (1000, compare.MOST_DIFFERENCES)
    deep = '{"a":' * 150 + "1" + "}" * 150
    assert documents(deep, deep.replace("1", "2"))[0][1] == "changed"


def test_of_a_long_text_only_what_lies_between_its_changes_counts() -> None:
    long = [f"line {number}" for number in range(3 * compare.MOST_LINES)]
    for place in (0, 1, len(long) - 1):
        changed = "\n".join([*long[:place], "changed", *long[place + 1 :]])
        for before, after in (("\n".join(long), changed), (changed, "\n".join(long))):
            found = compare.lines(before, after)
            assert found is not None and [one.place for one in found.items] == [f"line {place + 1}"]


async def test_calls_are_compared_in_every_part(house: House) -> None:
    webhook = await house.webhook(fieldMapping={"fieldOne": "n"})
    one, other = {"X-A": "1", "X-B": "2"}, {"X-B": "2", "X-C": "4"}
    old = await house.recorded(webhook, b'{"n": 1, "x": 2}', headers=one, query="p=1&q=2")
    new = await house.recorded(webhook, b'{"x": 2, "n": 3}', headers=other, query="q=2&p=7")
    found = await comparing.compared(house.gateway, OWNER, new, old)
    assert found.same_webhook and found.request.count == 0
    assert [(one.place, one.kind) for one in found.query.items] == [("p", "changed")]
    assert [(one.place, one.kind) for one in found.headers.items] == [("x-a", "removed"), ("x-c", "added")]
    assert [(one.place, one.before, one.after) for one in found.values.items] == [("fieldOne", "1", "3")]
    assert found.body.compared == "json" and [one.place for one in found.body.items] == ["n"]


async def test_bodies_of_every_kind(house: House) -> None:
    webhook = await house.webhook()
    for before, after, compared in (
        (b'{"a": 1}', b'{"a": 1}', "same"),
        (b'{"a": 1, "b": 2}', b'{"b":2,"a":1}', "written differently"),
        (b'{"a": "' + b"x" * 900_000 + b'"}', b'{"a": "y"}', "json"),
        (b"not\njson", b"not\nJSON", "text"),
        (b"\xff\x00", b"\xff\x01", "bytes"),
        (b"a\nb", b"a\r\nb", "bytes"),
    ):
        old, new = [await house.recorded(webhook, body) for body in (before, after)]
        found = await comparing.compared(house.gateway, OWNER, new, old)
        assert found.body.compared == compared
        texts = [text or "" for one in found.body.items for text in (one.before, one.after)]
        assert all(len(text) <= compare.LONGEST_TEXT for text in texts)


async def test_the_last_good_call_is_the_last_before_it_that_went_well(house: House) -> None:
    webhook = await house.webhook()

    async def started(nobody: bool = False) -> str:
        call = await house.recorded(webhook)
        house.engine.nobody_listens = nobody
        await house.deliver()
        return call

    first = await started()
    with pytest.raises(Refused, match="known to have gone well"):
        await comparing.compared(house.gateway, OWNER, first)
    await started(nobody=True)
    latest = await started()
    await started()
    assert (await comparing.compared(house.gateway, OWNER, latest)).compared_with == first
    with pytest.raises(Refused, match="another one"):
        await comparing.compared(house.gateway, OWNER, latest, latest)


async def test_what_is_too_large_is_not_read(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "LARGEST_READ", 1024)
    webhook = await house.webhook()
    small = await house.recorded(webhook, b'{"n":1}')
    for size, compared in ((1024, "json"), (1025, "too large")):
        large = await house.recorded(webhook, b'{"n":"%s"}' % (b"x" * (size - 8)))
        for pair in ((small, large), (large, small)):
            assert (await comparing.compared(house.gateway, OWNER, *pair)).body.compared == compared


async def test_a_body_that_is_not_kept_is_no_empty_one(house: House) -> None:
    story = await house.story(await house.recorded(await house.webhook()))
    for was, now, compared in (
        ((None, 2), (b"{}", 2), "gone"),
        ((b"{}", 2), (None, 2), "gone"),
        ((None, 0), (None, 0), "same"),
        ((None, 0), (b"", 0), "same"),
        ((None, 0), (b"{}", 2), "text"),
    ):
        old, new = [
            msgspec.structs.replace(story.invocation, body=body, body_size=size) for body, size in (was, now)
        ]
        assert comparing._bodies(old, new).compared == compared


async def test_where_ends_are_not_reported_the_last_good_call_is_the_last_that_was_started(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "PAGE", 2)
    webhook, other = await house.webhook(), await house.webhook()
    first, second = await house.recorded(webhook), await house.recorded(webhook)
    await house.deliver()
    house.engine.down = True  # from here on nothing is started
    await house.call(other)
    last = [await house.recorded(webhook) for _ in range(4)][-1]
    assert (await comparing.compared(house.gateway, OWNER, last)).compared_with == second
    monkeypatch.setattr(comparing, "LOOKED_BACK", 2)
    assert (await refused(comparing.compared(house.gateway, OWNER, last))).code == "not_found"
    monkeypatch.setattr(comparing, "LOOKED_BACK", 1_000)
    token = house.gateway.site.response_token(f"{first}.1")
    await report_end(house.gateway, first, token, "completed", "")
    assert (await comparing.compared(house.gateway, OWNER, last)).compared_with == first, "known to be good"
