"""What a webhook's owner is warned of at once, instead of by rejected calls."""

from typing import Any

from support.every_kind import secret_of
from support.house import House


async def warned(house: House, provider: str, secret: str) -> list[str]:
    made = await house.webhook(authentication={"method": "hmac", "provider": provider, "secret": secret})
    return made.warnings


async def test_a_secret_that_is_none_of_the_sender_is_reported(house: House) -> None:
    no_secret = "this looks like an API key of Stripe, which is not the signing secret."
    other = "it does not look like a signing secret of Stripe: they begin with whsec_."
    for secret, warning in (("sk_live_0123456789", no_secret), ("0123456789", other)):
        assert await warned(house, "stripe", secret) == [f"The signing secret: {warning}"]
    assert await warned(house, "stripe", "whsec_0123456789") == []
    (warning,) = await warned(house, "stripe", "whsec_0123456789\n")
    assert warning.startswith("The signing secret has blanks around it")
    assert await warned(house, "github", "as its user likes") == []


async def test_what_cannot_be_meant_is_reported(house: House) -> None:
    same = "a token of the tests"
    token, signed = (
        {"method": "token", "token": same},
        {"method": "hmac", "provider": "generic", "secret": same},
    )
    cases: tuple[tuple[dict[str, Any], str, bool], ...] = (
        ({"cors": {"enabled": True, "origins": []}}, "CORS is on and names no origin", True),
        ({"cors": {"enabled": True, "origins": ["*"]}}, "CORS is on and names no origin", False),
        ({"historyRetentionDays": 5, "bodyRetentionDays": 9}, "Bodies should be kept for 9 days", True),
        ({"historyRetentionDays": 5, "bodyRetentionDays": 5}, "Bodies should be kept", False),
        ({"bodyRetentionDays": 31}, "Bodies should be kept for 31 days", True),
        ({"bodyRetentionDays": 30}, "Bodies should be kept", False),
        ({"historyRetentionDays": 5}, "Bodies should be kept", False),
        ({"authentication": token | {"secondToken": same}}, "The second secret is the same", True),
        ({"authentication": token | {"secondToken": f"{same}."}}, "The second secret is the same", False),
        ({"authentication": signed | {"secondSecret": same}}, "The second secret is the same", True),
        ({"authentication": signed | {"secondSecret": f"{same}."}}, "The second secret is the same", False),
    )
    for settings, beginning, expected in cases:
        made = await house.webhook(**settings)
        assert any(one.startswith(beginning) for one in made.warnings) is expected, settings


async def test_a_webhook_that_asks_for_enough_is_warned_of_nothing(house: House) -> None:
    token = await house.webhook(authentication={"method": "token", "token": "x" * 16})
    assert token.warnings == []
    short = await house.webhook(authentication={"method": "token", "token": "x" * 15})
    assert [one[:27] for one in short.warnings] == ["A token of this webhook is "]
    nobody = await house.webhook(authentication={"method": "none"})
    assert [one[:19] for one in nobody.warnings] == ["Anybody who knows t"]


async def test_a_signature_that_does_not_cover_the_body_is_reported_until_a_digest_is_required(
    house: House,
) -> None:
    how = {"method": "hmac", "provider": "custom", "secret": "whsec_0123456789"}

    async def warned_of_the_body(content: str, **more: object) -> bool:
        scheme = {"signature": "header:X-Sig", "signedContent": content, "timestamp": "header:X-Time"}
        made = await house.webhook(authentication={**how, "scheme": scheme, **more})
        return any(one.startswith("The signature does not cover the body") for one in made.warnings)

    assert await warned_of_the_body("{timestamp}") is True
    assert await warned_of_the_body("{timestamp}", requireTimestampAndDigest=True) is False
    assert await warned_of_the_body("{timestamp}.{body}") is False


async def test_signed_values_with_nothing_between_them_are_reported(house: House) -> None:
    for between, expected in (("", ["Nothing divides the body's field a and x-b in"]), ("|", [])):
        scheme = {
            "signature": "header:X-Sig",
            "signedContent": f"{{bodyfield:a}}{between}{{header:X-B}}{{body}}",
        }
        how = {"method": "hmac", "provider": "custom", "secret": "whsec_0123456789", "scheme": scheme}
        assert [one[:45] for one in (await house.webhook(authentication=how)).warnings] == expected


async def test_a_window_is_compared_with_how_long_the_sender_sends_again(house: House) -> None:
    for title, again, hours, known_for in (
        ("Stripe", 72, 72, None),
        ("Stripe", 72, 24, "24"),
        ("Stripe", 72, 1.5, "1.5"),
        ("Wise", 336, 24, "24"),
        ("Wise", 336, 168, None),  # no window is longer
    ):
        secret = "whsec_0123456789" if title == "Stripe" else secret_of(title.lower())
        made = await house.webhook(
            authentication={"method": "hmac", "provider": title.lower(), "secret": secret},
            duplicateProtection={"enabled": True, "windowSeconds": int(hours * 3600)},
        )
        expected = (
            f"{title} may send a call again for {again} hours, and a duplicate is known for {known_for}:"
        )
        said = [one.partition(" one that comes later")[0] for one in made.warnings]
        assert said == [expected] * bool(known_for)
