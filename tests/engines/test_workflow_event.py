"""The JSON of a call, as a workflow gets it."""

import json

import pytest

from postern.workflows.event import event_of


@pytest.mark.parametrize("number", ["1e400", "-1E+999", "1" * 400 + ".5", "-" + "9" * 5_000])
def test_a_number_that_python_cannot_hold_is_its_text_and_its_neighbours_are_numbers(number: str) -> None:
    document = f'{{"beyond":{number},"price":10.50,"count":3,"long":{10**30},"small":1e-400}}'
    expected = {"beyond": number, "price": 10.5, "count": 3, "long": 10**30, "small": 0.0}
    assert event_of(document) == event_of(document.encode()) == expected


@pytest.mark.parametrize(
    "document",
    [
        '{"a":[0.1,-0.0,1E5,9007199254740993,9007199254740993.0,18446744073709551616,1.7976931348623157e308]}',
        '{"a":"\\u0000\\ud83d\\ude00/","a":true,"":null}',
        '{"half":"\\ud83d"}',
        "[" * 90 + "]" * 90,
    ],
)
def test_everything_else_is_what_python_reads(document: str) -> None:
    assert repr(event_of(document)) == repr(json.loads(document))
