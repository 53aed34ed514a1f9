"""The words of a workflow file without an engine: rehearsing, declaring, beginning one from a sample, the
examples."""

import gc
import json
import os
import re
import sys
import typing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postern.engines.embedded import supervisor
from postern.workflows import Rehearsal, rehearse, respond, skeleton, step, workflow
from postern.workflows.load import load, place_of
from postern.workflows.testing import make_event

EXAMPLES = Path(__file__).parents[2] / "examples"
ORDER_LOOKUP = Path(__file__).parents[2] / "src/postern/workflows/example/order_lookup.py"

# What strangers call the fields of what they send.
KEYS = st.text(max_size=4) | st.sampled_from(
    [*("None", "class", "__x", "__class__", "_", "Any", "str", "List", "event", "²", "ª", "ﬁ", "a²", "Event")]
    + ["\u202e", '"', "\\", '"""', "\n", "\x00", "\ud83d", "\U0001f600", "a" * 3000]
)

EVENT = make_event({"orderNumber": "1001"}, fieldOne="1001")


A, B = "@workflow\ndef a(event): pass\n", "@workflow\ndef b(event): return 'first'\n"


def flow(tmp_path: Path, source: str) -> Path:
    file = tmp_path / "flows.py"
    file.write_text("from postern.workflows import *\n" + source)
    return file


def test_what_an_editor_keeps_beside_a_file_is_no_workflow_file(tmp_path: Path) -> None:
    flow(tmp_path, "@workflow\ndef orders(event):\n    pass\n")
    (tmp_path / ".#flows.py").symlink_to("ada@laptop.4711:1795424000")  # Emacs, while it has unsaved changes
    (tmp_path / "._flows.py").write_bytes(b"\x00\x05\x16\x07")  # macOS, on other systems' disks
    found = load(tmp_path)
    assert (found.broken, [one.name for one in found.workflows]) == ((), ["orders"])


def test_a_change_within_the_second_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "flows.py"
    file.touch()
    seen = []
    for moment in (10**18, 10**18 + 1):
        os.utime(file, ns=(moment, moment))
        seen.append(supervisor._stamps(tmp_path, set()))
    assert seen[0] != seen[1]


def test_a_link_that_leads_to_itself_is_a_file_that_is_not_there(tmp_path: Path) -> None:
    """And no reason to notice no other change any more."""
    link = tmp_path / "loop.py"
    link.symlink_to(link)
    assert supervisor._stamps(tmp_path, set()) == {tmp_path: (0, 0, 0), link: None}
    with pytest.raises(PermissionError):
        supervisor._stamp(Refused(tmp_path))


class Refused(type(Path())):  # type: ignore[misc]
    def stat(self, *, follow_symlinks: bool = True) -> Any:
        raise PermissionError(13, "not yours")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=30,
)


@pytest.mark.parametrize(
    ("number", "names"),
    [("1001", ["#1001"]), ("#1002", ["#1002"]), (" 1003 ", ["#1003"]), ("4711", []), ("", []), ("100", [])],
)
def test_the_order_lookup_answers_with_at_most_one_order_for_any_webhook(
    number: str, names: list[str]
) -> None:
    rehearsed = rehearse(ORDER_LOOKUP, "order_lookup", {**EVENT, "webhookId": "any", "fieldOne": number})
    assert rehearsed.error == ""
    assert rehearsed.answer is not None and rehearsed.answer["status"] == 200
    orders = rehearsed.answer["body"]["orders"]
    assert [order["name"] for order in orders] == names
    assert all(set(order) == {"name", "financialStatus", "fulfillmentStatus"} for order in orders)


def test_the_order_lookup_listens_to_the_configured_webhook_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORDER_LOOKUP_WEBHOOK_ID", raising=False)
    assert not load(ORDER_LOOKUP).workflows[0].wants("wh_any")
    monkeypatch.setenv("ORDER_LOOKUP_WEBHOOK_ID", "wh_1")
    assert load(ORDER_LOOKUP).workflows[0].webhook_ids == ("wh_1",)


def test_every_example_loads() -> None:
    for file in [EXAMPLES / "follow_up.py", *(EXAMPLES / "agents").glob("[a-z]*.py")]:
        loaded = load(file)
        assert (loaded.broken, len(loaded.workflows)) == ((), 1), file


def test_a_rehearsal_takes_no_time_to_sleep_and_shows_what_was_printed() -> None:
    rehearsed = rehearse(EXAMPLES / "follow_up.py", "follow_up", {**EVENT, "fieldTwo": "a@example.com"})
    assert rehearsed == Rehearsal(
        printed="to a@example.com: Thank you for order 1001.\n(would sleep for 604800 seconds)\n"
        "to a@example.com: How do you like what you got with order 1001?\n"
    )


def test_a_rehearsal_tells_where_the_workflow_failed(tmp_path: Path) -> None:
    rehearsed = rehearse(flow(tmp_path, "@workflow\ndef flow(event):\n    event['nothing']\n"), "flow", EVENT)
    assert 'flows.py", line 4, in flow' in rehearsed.error
    assert rehearsed.error.endswith("KeyError: 'nothing'")


def test_a_rehearsal_of_a_broken_file_or_an_unknown_name_says_so(tmp_path: Path) -> None:
    for source, name, error in (
        ("def x(:", "flow", "the workflows file has an error: flows.py, line 2: invalid syntax"),
        (A, "b", f"there is no workflow called b in {tmp_path / 'flows.py'}; there is: a"),
    ):
        assert rehearse(flow(tmp_path, source), name, EVENT).error == error


def test_a_file_edited_twice_in_one_second_is_read_as_it_is_now(tmp_path: Path) -> None:
    beside = [tmp_path / "shop.py", tmp_path / "parts" / "stock.py"]
    beside[1].parent.mkdir()
    for word in ("one", "two", "six"):
        for file in beside:
            file.write_text(f"WORD = {word!r}\n")
            os.utime(file, (1_000_000_000, 1_000_000_000))
        source = "import shop, parts.stock as stock\n@workflow\ndef flow(event): respond([shop.WORD, stock.WORD])\n"
        rehearsed = rehearse(flow(tmp_path, source), "flow", EVENT)
        assert rehearsed.answer is not None and rehearsed.answer["body"] == [word, word]
    assert not sys.dont_write_bytecode, "other modules are compiled once"


def folder_of(tmp_path: Path, **sources: str) -> Path:
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text("from postern.workflows import *\n" + source)
    return tmp_path


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ("def b(:", "b.py, line 2: invalid syntax"),
        (B + "import no_such", "b.py, line 4: ModuleNotFoundError: No module named 'no_such'"),
        (B + "raise SystemExit('no')", "b.py, line 4: SystemExit: no"),
        ("import c\n" + B, "c.py, line 2: ZeroDivisionError: division by zero"),
        (A, "b.py, line 2: ValueError: two workflows are called a: the other one is a.py:2"),
    ],
)
def test_a_broken_file_keeps_no_other_from_its_workflows(tmp_path: Path, broken: str, error: str) -> None:
    source = {"c": "1/0"} if "import c" in broken else {}
    loaded = load(folder_of(tmp_path, a=A, b=broken, **source))
    assert ([one.name for one in loaded.workflows], loaded.failed) == (["a"], None)
    assert loaded.broken[0].error == error
    missing = "the workflows of b.py are missing, and calls that no other one wants wait"
    assert str(loaded.broken[0]).endswith(missing)
    # Once its last good version is known, that goes on.
    if not source:
        good = load(folder_of(tmp_path, b=B)).sources
        again = load(folder_of(tmp_path, b=broken), good)
        assert [one.name for one in again.workflows] == ["a", "b"]
        assert [str(one) for one in again.broken] == [f"{error}; the last good version of b.py goes on"]
        assert again.sources == good


def test_an_error_of_the_last_good_version_shows_the_line_that_ran(tmp_path: Path) -> None:
    def failed_at() -> str:
        with pytest.raises(ZeroDivisionError) as caught:
            loaded.workflows[0].function({})
        place = place_of(caught.value, tmp_path)
        return f"{place}: {place.text}" if place else ""

    file = tmp_path / "w.py"
    good = "from postern.workflows import workflow\n@workflow()\ndef w(event):\n    1 / 0\n"
    file.write_text(good)
    sources = load(tmp_path).sources
    file.write_text("# one line more\n" + good.replace("1 / 0", "respond(a(") + "\n")
    loaded = load(tmp_path, sources)
    assert failed_at() == "w.py, line 4: 1 / 0"
    file.write_text("# one line more\n" + good.replace("1 / 0", "2 / 0"))
    loaded = load(tmp_path, sources)
    assert failed_at() == "w.py, line 5: 2 / 0"


def test_a_file_that_others_import_goes_on_with_its_last_good_version_too(tmp_path: Path) -> None:
    asks = "import _shop\n@workflow\ndef {0}(event): return _shop.NAME\n"
    flows = {"a": asks.format("a"), "b": asks.format("b")}
    good = load(folder_of(tmp_path, _shop="NAME = 'old'\n", **flows))
    assert good.broken == ()
    again = load(folder_of(tmp_path, _shop="NAME = \n"), good.sources)
    assert [one.function({}) for one in again.workflows] == ["old", "old"]
    (broken,) = again.broken
    assert str(broken) == "_shop.py, line 2: invalid syntax; the last good version of _shop.py goes on"
    # What has changed beside it is used, and what was mended too.
    third = load(folder_of(tmp_path, a=flows["a"].replace("_shop.NAME", "'new'")), again.sources)
    assert [one.function({}) for one in third.workflows] == ["new", "old"]
    mended = load(folder_of(tmp_path, _shop="NAME = 'mended'\n"), third.sources)
    assert ([one.function({}) for one in mended.workflows], mended.broken) == (["new", "mended"], ())


def test_what_a_broken_file_has_imported_is_loaded_once(tmp_path: Path) -> None:
    # A name of its own: the folders of other tests stay on the path.
    loaded = load(folder_of(tmp_path, a="import imported_once\n1/0\n", imported_once=B))
    assert [one.name for one in loaded.workflows] == ["b"]
    assert [one.file for one in loaded.broken] == ["a.py"]


def test_a_workflow_file_named_like_a_library_takes_nobodys_place(tmp_path: Path) -> None:
    assert [declared.name for declared in load(folder_of(tmp_path, json=A)).workflows] == ["a"]
    assert json.loads("1") == 1


def test_what_cannot_be_a_workflow_or_an_answer_is_refused_where_it_is_written() -> None:
    with pytest.raises(ValueError, match="would never run"):
        workflow([])
    with pytest.raises(ValueError, match="cannot be a workflow's name"):
        workflow(name="a/b")(lambda event: None)
    with pytest.raises(ValueError, match="200 to 599"):
        respond({}, status=99)
    with pytest.raises(RuntimeError, match="works while a workflow runs"):
        respond({})


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("@workflow\ndef flow(): pass\n", "flow can never run: it is called with one value, the event"),
        ("@workflow\nasync def flow(event, more): pass\n", "flow can never run"),
        ("@workflow\ndef flow(*, event): pass\n", "flow can never run"),
        ("@step(retry=3)\ndef charge(): pass\n", "@step takes no retry: did you mean retries?"),
        (
            "@workflow(webhook='wh_1')\ndef a(event): pass\n",
            "@workflow takes no webhook: did you mean webhook_id?",
        ),
        ("@workflow(zzz=1)\ndef flow(event): pass\n", "@workflow takes no zzz: webhook_id, name, at_once"),
        (
            "async def a(): pass\n\n@workflow\nasync def b(event):\n    a()\n",
            "line 6: a is not awaited: write await",
        ),
    ],
)
def test_what_could_never_run_is_refused_with_its_line(tmp_path: Path, source: str, error: str) -> None:
    loaded = load(flow(tmp_path, source))
    assert loaded.failed is not None and error in loaded.failed.error
    assert loaded.failed.error.startswith(("flows.py, line 2: TypeError: ", "flows.py, line 6: a is not"))


def test_what_takes_the_event_in_its_own_way_is_loaded(tmp_path: Path) -> None:
    source = "workflow(name='a')(lambda *given: None)\nworkflow(name='b')(lambda event, n=1: None)\nworkflow(name='c')(print)\n"
    assert (loaded := load(flow(tmp_path, source))).broken == ()
    assert [one.name for one in loaded.workflows] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            "respond(object())",
            "StepFailed: the body is not JSON: Object of type object is not JSON serializable",
        ),
        ("respond(charge())", "the body is not JSON: a step was not awaited: write await before its call"),
        ("respond({'a': [around()]})", "what around returned is not JSON: a step was not awaited"),
        ("sleep('1h')", "TypeError: sleep('1h'): it takes seconds, as sleep(3600)"),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_fails_a_workflow_is_reported_in_words_that_help(tmp_path: Path, body: str, error: str) -> None:
    steps = "@step\nasync def charge(): return 1\n@step\ndef around(): return charge()\n"
    rehearsed = rehearse(flow(tmp_path, f"{steps}@workflow\ndef flow(event): {body}\n"), "flow", EVENT)
    gc.collect()  # of a coroutine that nobody awaited Python complains in whichever test it goes
    assert rehearsed.answer is None
    assert error in rehearsed.error


def test_outside_a_run_a_step_is_the_function_it_was() -> None:
    @step(retries=3)
    def double(number: int) -> int:
        return number * 2

    assert double(21) == 42


@given(payload=st.dictionaries(KEYS, JSON, max_size=5))
def test_a_skeleton_of_whatever_was_sent_runs_and_shows_all_that_it_holds(payload: dict[str, Any]) -> None:
    source = skeleton("Order paid", {**EVENT, "payload": payload}, "wh_1")
    assert source.isascii() and all(char.isprintable() or char == "\n" for char in source)
    made: dict[str, Any] = {}
    exec(compile(source, "made.py", "exec"), made)
    event = made[re.findall(r"\(event: (\w+)\)", source)[-1]]
    assert set(event.__annotations__) == {*EVENT}
    if payload:
        inside = typing.get_type_hints(event, made)["payload"]
        assert set(inside.__annotations__) == set(payload)


def test_a_skeleton_of_what_nests_deeply_or_widely_is_written_at_once() -> None:
    deep: Any = 1
    for _ in range(98):
        deep = [deep, {"a": deep}] if isinstance(deep, list) and len(deep) == 1 else [deep]
    wide = {f"a{number}": {"b": 1} for number in range(20_000)}
    for payload in ({"deep": deep}, wide):
        compile(skeleton("Order paid", {**EVENT, "payload": payload}, "wh_1"), "made.py", "exec")


def test_a_skeleton_is_python_that_loads_and_answers(tmp_path: Path) -> None:
    sample = {
        **EVENT,
        "payload": {
            "orderNumber": "1001",
            "total": 10.5,
            "customer": {"first-name": "Ann", "tags": ["a"], "address": {}},
            "items": [{"sku": "x", "count": 1}, {"sku": "y", "count": 2}],
            "note": None,
            "class": True,
        },
    }
    source = skeleton("Order paid", sample, "wh_1")
    file = tmp_path / "order_paid.py"
    file.write_text(source)
    loaded = load(file)
    assert loaded.broken == ()
    assert (loaded.workflows[0].name, loaded.workflows[0].webhook_ids) == ("Order paid", ("wh_1",))
    rehearsed = rehearse(file, "Order paid", sample)
    assert rehearsed.answer is not None and rehearsed.answer["body"] == {"ok": True}
    assert "@step(retries=3)\ndef order_paid_step(value: str)" in source
    assert "    order_paid_step(event[" in source
    assert "class Event(TypedDict):\n    webhookId: str\n" in source
    assert "    count: int" in source


@pytest.mark.parametrize("name", ["1st", "class", "überraschung", "!!!", 'a"b'])
def test_a_skeleton_loads_whatever_its_name_is(tmp_path: Path, name: str) -> None:
    file = tmp_path / "flow.py"
    file.write_text(
        skeleton(
            name, {"payload": {"": 1, "a b": {"": []}, "Event": {"x": {"y": 1}}, "any": {"z": None}}}, 'wh"1'
        )
    )
    loaded = load(file)
    assert (loaded.broken, len(loaded.workflows)) == ((), 1)
