"""Credentials never get as far as the disk."""

import msgspec
import pytest

from postern.core.signatures.credential import TokenCredential
from postern.core.signatures.redact import LONGEST_REMEMBERED, MASK, MOST_REMEMBERED, Mask
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential

SECRET = b"tok-3f9a8b7c6d5e"


def stored(mask: Mask, *headers: tuple[bytes, bytes]) -> dict[str, str]:
    return dict(msgspec.json.decode(mask.headers(headers)))


CREDENTIALS = "authorization cookie set-cookie proxy-authorization x-api-key x-gitlab-token"
CREDENTIALS += " x-hook-secret x-shop-password my-apikey"


@pytest.mark.parametrize("name", CREDENTIALS.split())
def test_headers_that_carry_credentials_are_masked_whatever_the_method(name: str) -> None:
    assert stored(Mask(TokenCredential("url", SECRET)), (name.encode(), b"anything")) == {name: MASK}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (SECRET, b"***"),
        (b"a=1&" + SECRET + b"&b", b"a=1&***&b"),
        (b"tok%2D3f9a8b7c6d5e=", b"***="),
        (SECRET + b"=x", b"***=x"),
        (b"token=" + SECRET, b"token=***"),
        (b"a&=&b=c", b"a&=&b=c"),
    ],
)
def test_the_webhooks_own_token_is_masked_wherever_it_stands_in_the_query(sent: bytes, kept: bytes) -> None:
    assert Mask(TokenCredential("url", SECRET)).query(sent) == kept


def test_headers_of_one_call_say_nothing_about_those_of_the_next() -> None:
    mask = Mask(TokenCredential("header", SECRET, header_name="X-Shop"))
    values = [b"a", b"b", SECRET, b"a", b"x" * 5000, b"a", b"see " + SECRET, b"", b"b"]
    for value in values:
        kept = MASK if SECRET in value else value.decode()
        headers = ((b"x-note", value), (b"x-shop", b"guess"), (b"x-note", b"b"))
        for _ in range(2):
            masked = msgspec.json.decode(mask.headers(headers))
            assert masked == [["x-note", kept], ["x-shop", MASK], ["x-note", "b"]]


def test_other_headers_and_signatures_are_kept_in_order_and_repeated() -> None:
    headers = ((b"x-signature", b"abc"), (b"a", b"1"), (b"a", b"2"), (b"x-raw", b"\xff"))
    kept = msgspec.json.decode(Mask(TokenCredential("url", SECRET)).headers(headers))
    assert kept == [["x-signature", "abc"], ["a", "1"], ["a", "2"], ["x-raw", "ÿ"]]


@pytest.mark.parametrize(
    "value", [SECRET, b"prefix " + SECRET, b"https://x/webhook/abc?token=" + SECRET, b"tok%2D3f9a8b7c6d5e"]
)
def test_the_webhooks_token_in_the_wrong_place_is_masked_there_too(value: bytes) -> None:
    assert stored(Mask(TokenCredential("bearer", SECRET)), (b"referer", value)) == {"referer": MASK}


PARAMETERS = b"token t%6Fken access_token api_key apikey key secret password auth hub.verify_token"


@pytest.mark.parametrize("name", PARAMETERS.split())
def test_the_url_token_is_masked_under_its_name_however_it_is_spelt(name: bytes) -> None:
    mask = Mask(TokenCredential("url", SECRET))
    assert mask.query(b"a=1&%s=guess&b=%%20" % name) == b"a=1&%s=***&b=%%20" % name


def test_a_parameter_of_the_users_own_name_and_the_second_token_are_masked() -> None:
    own = Mask(TokenCredential("url", SECRET, parameter_name="k"))
    assert own.query(b"k=guess&token2=x") == b"k=***&token2=x"
    second = b"other-0987654321"
    assert stored(Mask(TokenCredential("bearer", SECRET, second)), (b"x-note", second)) == {"x-note": MASK}


def test_the_token_of_a_handshake_is_masked_wherever_it_stands() -> None:
    scheme = SignatureScheme.from_document({"signature": "header:X-Signature"})
    mask = Mask(SignatureCredential(scheme, SECRET), b"a token for the handshake")
    for name in (b"x-note", b"user-agent", b"content-type", b"referer"):
        assert stored(mask, (name, b"x a token for the handshake")) == {name.decode(): MASK}
    assert mask.query(b"a=1&b=a+token%20for+the+handshake") == b"a=1&b=***"


def test_a_short_token_that_is_a_word_of_the_content_type_does_not_hide_what_the_body_is() -> None:
    mask = Mask(TokenCredential("bearer", b"json"))
    assert stored(mask, (b"content-type", b"application/json")) == {"content-type": "application/json"}
    assert stored(mask, (b"x-note", b"json")) == {"x-note": MASK}
    long = Mask(TokenCredential("bearer", SECRET))
    assert stored(long, (b"content-type", b"text/plain; key=" + SECRET)) == {"content-type": MASK}


def test_of_a_test_call_for_others_the_signature_is_masked_and_nothing_else() -> None:
    scheme = SignatureScheme.from_document({"signature": ["header:X-Signature", "query:sig"]})
    mask = Mask(SignatureCredential(scheme, SECRET))
    headers = ((b"x-signature", b"abc"), (b"x-shop", b"1"))
    masked = dict(msgspec.json.decode(mask.headers(headers, is_test=True)))
    assert masked == {"x-signature": MASK, "x-shop": "1"}
    assert mask.query(b"sig=abc&a=1", is_test=True) == b"sig=***&a=1"
    assert stored(mask, *headers) == {"x-signature": "abc", "x-shop": "1"}
    assert mask.query(b"sig=abc&a=1") == b"sig=abc&a=1"


def test_of_the_names_that_strangers_choose_only_so_many_are_remembered_and_all_are_masked() -> None:
    mask = Mask(TokenCredential("url", SECRET))
    for number in range(MOST_REMEMBERED + 10):
        kept = stored(mask, (b"x-%d-token" % number, b"1"), (b"x-%d" % number, b"2"))
        assert kept == {f"x-{number}-token": MASK, f"x-{number}": "2"}
    long = b"x" * LONGEST_REMEMBERED + b"-token"
    assert stored(Mask(TokenCredential("url", SECRET)), (long, b"1")) == {long.decode(): MASK}
    assert len(mask._known) == MOST_REMEMBERED
