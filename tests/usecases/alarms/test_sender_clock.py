"""What an incident says of the sender's own clock: true at each moment, and silent where the sender says nothing."""

from msgspec.structs import replace

from postern import presets
from postern.core.watch.alarms import Incident
from postern.usecases.alarms.incidents import clock_of

AT = 1_800_000_000.0
FAILING = Incident("inc_1", "wh_1", "rejected", AT, AT, AT + 8220, 357)


def said(incident: Incident, hours: float, name: str = "shopify") -> str:
    return clock_of(presets.get(name), incident, AT + hours * 3600) or ""


def test_it_counts_down_to_what_the_sender_does() -> None:
    assert said(FAILING, 2.3333) == (
        "Shopify gives the first of them up in 100 minutes at the latest, and deletes subscriptions that were made "
        "through the API."
    )
    assert "in 1 minute at the latest" in said(FAILING, 3.99)
    assert "in 2 days at the latest" in said(FAILING, 2.3, "stripe")


def test_afterwards_it_says_which_still_come_and_which_are_lost_there() -> None:
    assert "gave the first of them up at 2027-01-15 12:00 UTC, and" in said(FAILING, 5)
    over = replace(FAILING, closed_at=AT + 9000, closed_because="good calls")
    assert "sends calls since 2027-01-15 09:00 UTC again by itself, until 2027-01-15 14:17 UTC." in said(
        over, 5
    )
    assert said(over, 7).startswith("Shopify sends none of them by itself any more.")


def test_nothing_is_said_that_the_sender_does_not_say() -> None:
    assert clock_of(None, FAILING, AT) is None and said(FAILING, 1, "github") == ""
    assert said(replace(FAILING, kind="silence"), 1) == ""


def test_every_clock_names_its_source() -> None:
    told = [one.sender for one in presets.load().values() if one.sender.then or one.sender.retry_hours]
    assert told and all(one.source and one.retry_hours for one in told)
