"""Which rows hold for which calls, and the sentence that says why one does not."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postern.core.admit import admit
from postern.core.calls.call import Call
from postern.core.calls.content import PAYLOAD_LIMIT, TakenBodies
from postern.core.limits import Limits
from postern.core.signatures.credential import NoCredential, TokenCredential
from postern.core.signatures.redact import Mask
from postern.core.verdict import Verdict
from postern.core.visible import can_be_stored, on_one_line
from postern.core.webhooks.conditions import COMPARISONS, CompiledRow, Conditions, Operator, values_problem
from postern.core.webhooks.webhook import DuplicateKey, Webhook
from support.calls import call, webhook

Asked = tuple[str, Operator, list[str]]
TOPIC = ("header:X-Topic",)


def judged(rules: Webhook, received: Call) -> Verdict:
    return admit(rules, received, Limits(lambda: 0.0))


def asking(*rows: Asked, ignore_case: bool = False, **settings: Any) -> Webhook:
    mask = Mask(settings.get("credential") or NoCredential())
    made = Conditions([CompiledRow(*one, ignore_case, mask=mask, event=TOPIC) for one in rows])
    return webhook(settings.pop("credential", None), conditions=made, **settings)


def why(body: Any, *rows: Asked, headers: tuple[tuple[str, str], ...] = (), ignore_case: bool = False) -> str:
    """The reason; empty if all rows hold."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    verdict = judged(
        asking(*rows, ignore_case=ignore_case, takes=TakenBodies("whole")), call(content, *headers)
    )
    assert verdict.outcome in ("accepted", "filtered"), verdict
    assert (verdict.outcome == "filtered") == bool(verdict.detail)
    return verdict.detail


@pytest.mark.parametrize(
    ("value", "operator", "values", "holds"),
    [
        ("paid", "oneOf", ["open", "paid"], True),
        ("paid", "oneOf", ["open"], False),
        ("paid", "notOneOf", ["open"], True),
        ("paid", "notOneOf", ["open", "paid"], False),
        ("prepaid order", "contains", ["x", "paid"], True),
        ("prepaid", "contains", ["x", "Paid"], False),
        ("orders/paid", "beginsWith", ["x", "orders/"], True),
        ("orders/paid", "beginsWith", ["paid"], False),
        (100, "greater", ["99.99"], True),
        (100, "greater", ["100"], False),
        ("100.5", "greater", ["100"], True),
        ("a lot", "greater", ["100"], False),
        (-1, "less", ["0"], True),
        (0, "less", ["0"], False),
        (1e3, "oneOf", ["1000.00"], True),
        ("1000.0", "notOneOf", ["1000"], False),
        ("007", "oneOf", ["7"], False),
        (123456789012345678901234567890, "oneOf", ["123456789012345678901234567891"], False),
        (True, "oneOf", ["true"], True),
        ("", "there", [], True),
        (0, "there", [], True),
        ("x", "notThere", [], False),
        ({"b": 1}, "there", [], True),
    ],
)
def test_a_row_holds_or_not(value: Any, operator: Operator, values: list[str], holds: bool) -> None:
    assert (why({"a": value}, ("a", operator, values)) == "") is holds


@pytest.mark.parametrize("operator", COMPARISONS)
@pytest.mark.parametrize("body", [{}, {"a": None}, {"a": {"b": None}}, {"a": [1]}, {"a": "b"}])
def test_what_is_not_there_holds_for_two_alone_and_that_is_said(body: Any, operator: Operator) -> None:
    values = {"texts": ["b"], "number": ["1"], "nothing": []}[COMPARISONS[operator].takes]
    reason = why(body, ("a.b", operator, values))
    assert (reason == "") is (operator in ("notOneOf", "notThere"))
    assert reason in ("", "row 1: a.b is not there, which holds only for notOneOf and notThere")


def test_the_reason_names_the_first_row_that_does_not_hold_and_its_value() -> None:
    rows: list[Asked] = [
        ("paid", "oneOf", ["true"]),
        ("customer.name", "notOneOf", ["Ann", "Bob"]),
        ("total", "greater", ["100"]),
    ]
    ann = {"paid": True, "customer": {"name": "Ann"}, "total": 80}
    assert why(ann, *rows) == 'row 2: customer.name is "Ann", which is one of "Ann", "Bob"'
    other = ann | {"customer": {"name": "Eve"}}
    assert why(other, *rows) == "row 3: total is 80, which is no number greater than 100"
    assert why(other | {"total": "80"}, *rows).startswith("row 3: total is 80, which")
    assert why(other | {"total": 101}, *rows) == ""
    many = why({"a": "x" * 500}, ("a", "oneOf", [str(one) for one in range(9)]))
    assert many == f'row 1: a is "{"x" * 79}…", which is not one of 0, 1, 2 and 6 more'
    assert why({"a": "x"}, ("a", "notThere", [])) == 'row 1: a is "x", where nothing may be'


def test_capitals_count_unless_the_row_says_otherwise() -> None:
    for operator, value in (("oneOf", "PAID"), ("contains", "aI"), ("beginsWith", "pA")):
        row: Asked = ("a", operator, [value])  # type: ignore[assignment]
        assert why({"a": "Paid"}, row) and not why({"a": "Paid"}, row, ignore_case=True)
    assert why({"a": "STRASSE"}, ("a", "oneOf", ["straße"]), ignore_case=True) == ""


def test_a_star_stands_for_each_element_and_one_that_holds_is_enough() -> None:
    items = {"items": [{"sku": "a"}, {"sku": "b"}, {}]}
    assert why(items, ("items[*].sku", "oneOf", ["b"])) == ""
    said = why(items, ("items[*].sku", "oneOf", ["c"]))
    assert (
        said
        == 'row 1: items[*].sku has 2 values and none of them holds; the first is "a", which is not one of "c"'
    )
    assert why(items, ("items[*].sku", "notThere", [])) == "", "the third has none"
    assert why([["a"], ["b", "c"]], ("items[*][*]", "oneOf", ["c"])) == "", "an array that is read whole"
    for empty in ({"items": []}, {}, {"items": "text"}):
        assert why(empty, ("items[*].sku", "notThere", [])) == ""
        assert "is not there" in why(empty, ("items[*].sku", "there", []))
    far = {"items": [0] * 2000 + [1]}
    assert "has 2000 values" in why(far, ("items[*]", "oneOf", ["1"])), "no more than these are looked at"


def test_headers_and_the_event_are_read_as_they_were_sent() -> None:
    sent = (
        ("X-Topic", "orders/paid"),
        ("X-Two", "first"),
        ("X-Two", "second"),
        ("X-Umlaut", "z\u00c3\u00bc"),
    )
    assert why({}, ("header:x-topic", "oneOf", ["orders/paid"]), headers=sent) == ""
    assert why({}, ("event", "beginsWith", ["orders/"]), headers=sent) == ""
    assert why({"event": "own"}, ("body:event", "oneOf", ["own"]), headers=sent) == ""
    assert why({}, ("header:X-Two", "oneOf", ["second"]), headers=sent).startswith(
        'row 1: the header X-Two is "first"'
    )
    assert why({}, ("header:X-Umlaut", "oneOf", ["zü"]), headers=sent) == ""
    assert why({}, ("event", "there", [])).startswith("row 1: the event is not there")


def test_a_masked_header_is_compared_as_the_history_shows_it() -> None:
    token = TokenCredential("header", b"a-right-long-token")
    right = ("X-Api-Key", "a-right-long-token")
    for name, value in (
        ("X-Api-Key", "a-right-long-token"),
        ("Cookie", "session=1"),
        ("X-Copy", "it is a-right-long-token"),
        ("traceparent", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"),
    ):
        rules = asking((f"header:{name}", "oneOf", ["x"]), credential=token)
        verdict = judged(rules, call(b"{}", right, *([(name, value)] if name != right[0] else [])))
        assert verdict.detail == f'row 1: the header {name} is "***", which is not one of "x"'
        rules = asking((f"header:{name}", "contains", ["right", "session", "0123"]), credential=token)
        more = [(name, value)] if name != right[0] else []
        assert judged(rules, call(b"{}", right, *more)).outcome == "filtered"


def test_they_are_judged_after_the_content_and_claim_no_key() -> None:
    rules = asking(("a", "oneOf", ["x"]), duplicates=DuplicateKey(60))
    verdict = judged(rules, call(b'{"a":"y"}'))
    assert [step for step, _, _ in verdict.trace] == ["authentication", "content", "conditions"]
    assert (verdict.code, verdict.duplicate_key, verdict.fields, verdict.payload) == (
        "filtered",
        None,
        {},
        b"",
    )
    verdict = judged(rules, call(b'{"a":"x"}'))
    assert ("conditions", True, "1 of 1 hold") in verdict.trace and verdict.duplicate_key
    assert judged(rules, call(b"nonsense")).outcome == "rejected"


def test_with_each_every_element_is_judged() -> None:
    rules = asking(("a", "oneOf", ["x"]), takes=TakenBodies("each"))
    verdict = judged(rules, call(b'[{"a":"x"},{"a":"y"},7]'))
    assert verdict.outcome == "accepted"
    assert [one.outcome for _, one in verdict.elements] == ["accepted", "filtered", "rejected"]
    verdict = judged(rules, call(b'[{"a":"z"},{"a":"y"},7]'))
    assert (verdict.outcome, verdict.detail) == ("filtered", "none of 3 elements fulfils the conditions")


@pytest.mark.parametrize(
    ("operator", "values", "problem"),
    [
        ("oneOf", [], "write one value or more"),
        ("greater", ["1", "2"], "write one number, like 100 or 9.50"),
        ("less", ["NaN"], "write one number, like 100 or 9.50"),
        ("there", ["1"], "takes no values"),
        ("less", ["-1.5e3"], None),
        ("notThere", [], None),
    ],
)
def test_an_operator_takes_its_number_of_values(
    operator: Operator, values: list[str], problem: str | None
) -> None:
    assert values_problem(operator, values) == problem


HOSTILE = st.sampled_from(
    [
        b'{"a":NaN}',
        b'{"a":1e999999999999}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":"\\ud800"}',
        b'{"a":"\\u0000\\u001b[31m\\u202e"}',
        b'{"a":' + b"[" * 99 + b"]" * 99 + b"}",
        b'{"a":' + b'{"a":' * 90 + b"1" + b"}" * 90 + b"}",
        b'{"a":[[[]]],"a":[{"b":1},null,"x"]}',
        b'{"a":"' + b"x" * 100_000 + b'"}',
    ]
)
WORDS = st.text(max_size=8) | st.sampled_from(["1", "1.0", "1e400", "NaN", "-0", "***"])
BODIES = (
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
        lambda one: st.lists(one, max_size=3) | st.dictionaries(st.sampled_from("ab"), one),
    )
    .map(lambda one: {"a": one})
    .map(lambda one: json.dumps(one).encode())
)


@st.composite
def rows(draw: st.DrawFn) -> Asked:
    places = [
        "a",
        "a.b",
        "a[0]",
        "a[*]",
        "a[*].b",
        "a[*][*][*].a",
        "event",
        "header:X-Topic",
        "header:Cookie",
    ]
    operator = draw(st.sampled_from(list(COMPARISONS)))
    match COMPARISONS[operator].takes:
        case "texts":
            values = draw(st.lists(WORDS, min_size=1, max_size=5))
        case "number":
            values = [draw(st.sampled_from(["0", "-1.5", "1e9999", "9" * 100]))]
        case "nothing":
            values = []
    return draw(st.sampled_from(places)), operator, values


@given(BODIES | HOSTILE, st.lists(rows(), min_size=1, max_size=4), st.binary(max_size=12), st.booleans())
def test_whatever_comes_has_one_verdict_with_a_plain_sentence(
    body: bytes, asked: list[Asked], header: bytes, ignore_case: bool
) -> None:
    received = call(body, ("X-Topic", header), ("X-Topic", b"x"), ("Cookie", b"a"))
    verdict = judged(asking(*asked, ignore_case=ignore_case), received)
    one_by_one = [
        judged(asking(one, ignore_case=ignore_case), received).outcome == "accepted" for one in asked
    ]
    if verdict.outcome == "rejected":
        assert verdict.code == "malformed_json" and len(body) < PAYLOAD_LIMIT
        return
    assert (verdict.outcome == "accepted") == all(one_by_one)
    if verdict.outcome == "filtered":
        assert verdict.detail.startswith(f"row {one_by_one.index(False) + 1}: ")
        assert on_one_line(verdict.detail) and can_be_stored(verdict.detail) and len(verdict.detail) < 700


@given(BODIES, rows().filter(lambda one: "[*]" not in one[0]))
def test_an_opposite_holds_where_its_row_does_not(body: bytes, asked: Asked) -> None:
    place, operator, values = asked
    opposites: dict[Operator, Operator] = {"oneOf": "notOneOf", "there": "notThere"}
    if operator in opposites:
        received = call(body, ("X-Topic", "1"))
        both = [
            judged(asking((place, one, values)), received).outcome for one in (operator, opposites[operator])
        ]
        assert "rejected" in both or sorted(both) == ["accepted", "filtered"]


@pytest.mark.parametrize("operator", COMPARISONS)
def test_an_operator_is_told_on_the_page_about_conditions(operator: Operator) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "conditions.md").read_text()
    assert f"`{operator}`" in page, f"docs/how-to/conditions.md is to say when {operator} holds"
