"""The form of a pasted secret: right, another sender's thing, or nothing known."""

import re

import pytest

from postern import presets
from postern.core.signatures.secret_form import MistakenSecret, SecretForm

FORM = SecretForm("whsec_.+", "like", "unlike", (MistakenSecret("sk_.*", "an API key"),))


@pytest.mark.parametrize(
    ("secret", "problem"),
    [
        ("whsec_abc", None),
        ("whsec_", "unlike"),
        ("my whsec_abc", "unlike"),
        ("sk_live_abc", "an API key"),
        ("whsec_sk_", None),
    ],
)
def test_a_secret_is_compared_as_a_whole(secret: str, problem: str | None) -> None:
    assert FORM.problem(secret) == problem


def test_of_a_secret_that_its_user_chooses_nothing_is_reported() -> None:
    form = presets.get("github").secret_form
    assert form.problem("anything at all") is None
    assert (
        form.problem("ghp_0123")
        == "This looks like an access token of GitHub, which is not the signing secret."
    )


# Of senders whose secrets have one form: one as their documents show it, made up.
RIGHT = {
    "stripe": "whsec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FH",
    "standardwebhooks": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "linear": "lin_wh_0aBcDeF",
    "paddle": "pdl_ntfset_01gkdqy_abc+/=",
    "slack": "8f742231b10e8888abcd99fff0085a5d",
    "meta": "0123456789abcdef0123456789abcdef",
    "shopify": "shpss_0123456789abcdef0123456789abcdef",
    "hubspot": "01234567-89ab-cdef-0123-456789abcdef",
    "klaviyo": "sixteen or more characters",
    "lemonsqueezy": "six or more",
    "xero": "dEsPbkEJZ3ZzOHhwQ0pk0A==",
    "zendesk": "dGhpc19zZWNyZXRfaXNfZm9yX3Rlc3Rpbmdfb25seQ==",
    "woocommerce": "any text (but HTML)",
    "adyen": "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
    "airtable": "c2VjcmV0IG9mIHRoZSB3ZWJob29r",
    "braintree": "0123456789abcdef0123456789abcdef",
    "clerk": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "discord": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "docusign": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
    "dropbox": "0a1b2c3d4e5f6g7",
    "gitlab": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "line": "0123456789abcdef0123456789abcdef",
    "notion": "secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl",
    "openai": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "paypal": "1JE4291016473214C",
    "paystack": "sk_test_0123456789abcdef",
    "pubsub": "push@example.iam.gserviceaccount.com",
    "resend": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "sendgrid": "MFkw" + "A" * 118 + "==",
    "sns": "arn:aws:sns:eu-central-1:123456789012:orders",
    "trello": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "twilio": "0123456789abcdef0123456789abcdef",
}


def test_every_form_has_an_example() -> None:
    assert RIGHT.keys() == {name for name, preset in presets.load().items() if preset.secret.pattern}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_secret_looks_right_and_a_mistaken_one_does_not(name: str) -> None:
    form = presets.get(name).secret_form
    assert form.problem(RIGHT[name]) is None
    assert form.problem("<>") == form.unlike
    assert all(re.compile(other.pattern) for other in form.others)
