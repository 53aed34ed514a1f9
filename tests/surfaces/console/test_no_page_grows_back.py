"""How many words and controls each page has in sight, besides what senders sent: no page grows unseen."""

import re

import pytest

from support.stored import open_incident
from surfaces.console.conftest import Console, Outside
from surfaces.console.test_first_hour import COUNTED

CONTROLS = """() => [...document.querySelectorAll("main :is(a[href], button, input, select, textarea, summary)")]
    .filter((one) => one.type !== "hidden" && !one.closest(".tree, table") && one.checkVisibility({ visibilityProperty: true })
        && one.getBoundingClientRect().width > 1).length"""
TWICE = """() => [...document.querySelectorAll("[id]")].map((one) => one.id).filter((id, place, all) => all.indexOf(id) < place)"""
API_WORDS = re.compile(r"\b(?:invocation|delivery|emission|admission)s?\b", re.IGNORECASE)
CEILINGS = {
    "/webhooks": (55, 8),
    "/webhooks/new": (75, 8),
    "/webhooks/new/signed": (140, 32),
    "/webhooks/new/signed?provider=shopify": (65, 6),
    "/webhooks/new/tool": (40, 5),
    "/webhooks/{shop}/ready": (115, 11),
    "/webhooks/{shop}": (95, 12),
    "/webhooks/{shop}/calls": (85, 19),
    "/webhooks/{shop}/settings": (290, 76),
    "/webhooks/{shop}/schedule": (165, 21),
    "/webhooks/{shop}/rejected": (60, 9),
    "/calls": (75, 11),
    "/calls/{call}": (120, 20),
    "/incidents/{incident}": (70, 11),
    "/volume": (75, 9),
    "/workflows": (110, 5),
    "/tester": (125, 11),
    "/settings": (55, 14),
    "/settings/channels": (70, 16),
    "/settings/retention": (205, 12),
    "/bin": (25, 3),
}
"""By page: words, and what can be pressed or filled in outside of tables, with one webhook and one call."""


@pytest.fixture(scope="module")
def known(outside: Outside) -> dict[str, str]:
    shop = outside.shop("Shop", "a" * 32, fieldMapping={"fieldOne": "order_number"})
    sent = outside.api.post(f"webhooks/{shop['id']}/test-calls", {})
    assert sent.status == 200, sent.text
    incident = open_incident(outside.program.data_dir, shop["id"])
    return {"shop": shop["id"], "incident": incident, "call": sent.json["calls"][0]["invocationId"]}


@pytest.mark.parametrize("path", CEILINGS)
def test_a_page_has_no_more_words_and_controls_than_this(
    console: Console, known: dict[str, str], path: str
) -> None:
    console.page.set_viewport_size({"width": 1440, "height": 900})
    console.open(path.format(**known))
    text = console.page.evaluate(COUNTED)
    assert re.findall(API_WORDS, text.replace("Duplicate delivery protection", "")) == []
    assert console.page.evaluate(TWICE) == []
    words = len(re.findall(r"\w[\w'’.-]*", text))
    controls = console.page.evaluate(CONTROLS)
    print(f"{path}: {words} words, {controls} controls")
    most_words, most_controls = CEILINGS[path]
    assert (words <= most_words, controls <= most_controls) == (True, True), (
        f"{words} words, {controls} controls: {text}"
    )
