"""The cookie of a browser in which somebody has signed in before."""

from postern.usecases.access.known_browsers import browser_token, known_browser
from support.clock import later
from support.house import House

DAY = 24 * 3600


async def test_a_browser_is_known_for_half_a_year(house: House) -> None:
    token = browser_token(house.gateway, "ada")
    for days, is_known in ((179, True), (2, False)):
        later(house.gateway, days * DAY)
        assert (known_browser(house.gateway, "ada", token) is not None) is is_known


async def test_a_token_that_was_changed_is_nobodys(house: House) -> None:
    token = browser_token(house.gateway, "ada")
    body, _, signature = token.rpartition(".")
    identifier, _, since = body.rpartition(".")
    younger = f"{identifier}.{int(since) + DAY}.{signature}"
    wrong = ["", ".", "..", token[:-1], token + "0", f"{body}.", younger, f"{body}.\ud800", "x" * 9_999]
    for one in [*wrong, *(f"{identifier}.{time}.{signature}" for time in ("٣", "", "x"))]:
        assert known_browser(house.gateway, "ada", one) is None
