"""A recorded trigger as the variables of which a workflow is made."""

from typing import Any

import pytest

from postern.core.history.sample import DEEPEST, LONGEST_EXAMPLE, MOST_VARIABLES, variables


def inside(payload: dict[str, Any]) -> list[str]:
    return [one.path for one in variables({"payload": payload}) if one.path.startswith("payload")]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *[(None, "null"), (True, "boolean"), (7, "number"), (7.5, "number")],
        *[("a", "text"), ([], "array"), ({}, "object")],
    ],
)
def test_a_variable_says_what_it_holds(value: object, kind: str) -> None:
    assert variables({"payload": {"a": value}})[-1].type == kind


def test_of_an_array_the_first_element_is_shown_and_each_name_on_the_way() -> None:
    assert inside({"a": [{"b": 1}, {"c": 2}], "d": [], "e.f": "x"}) == [
        *("payload.a", "payload.a[0]", "payload.a[0].b", "payload.d", r"payload.e\.f")
    ]


def test_a_payload_of_any_size_and_depth_gives_a_bounded_list() -> None:
    deep: dict[str, Any] = {}
    for _ in range(20):
        deep = {"a": deep}
    assert len(inside(deep)) == DEEPEST
    wide = {str(number): {"in": number} for number in range(1000)}
    assert len(variables({"payload": wide})) == MOST_VARIABLES
    fields = {"fieldOne": '{"a":' + "1" * 10 + "}", "fieldTwo": '["b"]', "fieldThree": "{not JSON"}
    paths = [one.path for one in variables({**fields, "payload": 7})]
    assert paths[6:] == ["fieldOne.a", "fieldTwo[0]"]


def test_a_long_example_is_cut() -> None:
    longest = "x" * LONGEST_EXAMPLE
    for example, shown in ((longest, longest), (longest + "x", longest + "…")):
        assert variables({"payload": {"a": example}})[-1].example == shown
    assert variables({"payload": {"a": {"b": [1, True]}}})[6].example == '{"b":[1,true]}'
    assert variables({"payload": {"a": 7}})[-1].example == 7
