"""The static token in each of its placements."""

from base64 import b64encode
from typing import get_args

import pytest

from postern.core.calls.call import Call
from postern.core.signatures.credential import Placement, TokenCredential, Unproven, VerifiedCall
from support.calls import call

MAIN, SECOND = b"main-token-0123456789", b"second-token-0123456789"


def token(placement: str, second: bytes | None = SECOND, **settings: str) -> TokenCredential:
    return TokenCredential(placement, MAIN, second, **settings)  # type: ignore[arg-type]


def basic(username: str, password: bytes) -> str:
    return "Basic " + b64encode(username.encode() + b":" + password).decode()


SENT = {
    "header": lambda secret: call(b"{}", ("x-api-key", secret)),
    "bearer": lambda secret: call(b"{}", ("Authorization", b"Bearer " + secret)),
    "basic": lambda secret: call(b"{}", ("Authorization", basic("shop", secret))),
    "url": lambda secret: call(b"{}", query=b"a=1&token=" + secret),
    "body": lambda secret: call(b'{"a":1,"token":"%s"}' % secret),
}
EVERY_PLACEMENT = pytest.mark.parametrize("placement", get_args(Placement))


def credential(placement: str) -> TokenCredential:
    return token(placement, username="shop")


MISMATCH, MISSING = "credential_mismatch", "credential_missing"


def verdict(credential: TokenCredential, sent: Call) -> str:
    """Which token has matched, or why none has."""
    answer = credential.check(sent)
    return answer.matched if isinstance(answer, VerifiedCall) else answer.code


@EVERY_PLACEMENT
def test_the_main_token_proves_its_sender_and_the_second_one_where_there_is_one(placement: str) -> None:
    sent = [SENT[placement](secret) for secret in (MAIN, SECOND, b"another")]
    both, alone = credential(placement), token(placement, None, username="shop")
    assert [verdict(both, one) for one in (*sent, call(b"{}"))] == ["main", "second", MISMATCH, MISSING]
    assert [verdict(alone, one) for one in sent] == ["main", MISMATCH, MISMATCH]


@pytest.mark.parametrize(
    ("credential", "sent", "expected"),
    [
        # Sent twice, one of which is right.
        (token("header"), call(b"{}", ("X-Api-Key", MAIN), ("X-Api-Key", b"other")), MISMATCH),
        (token("header", header_name="X-Shop-KEY"), call(b"{}", ("x-shop-key", MAIN)), "main"),
        (token("bearer"), call(b"{}", ("Authorization", b"bEaReR " + MAIN)), "main"),
        (TokenCredential("basic", b"a:b:c", username="shop"), call(b"{}", ("Authorization", basic("shop", b"a:b:c"))), "main"),
        (credential("basic"), call(b"{}", ("Authorization", basic("somebody", MAIN))), MISMATCH),
        (TokenCredential("url", b"a b+c/d"), call(b"{}", query=b"token=a%20b%2Bc%2Fd"), "main"),
    ],
)  # fmt: skip
def test_a_token_counts_where_and_as_its_webhook_wants_it(
    credential: TokenCredential, sent: Call, expected: str
) -> None:
    assert verdict(credential, sent) == expected


@pytest.mark.parametrize(
    "value", ["Basic", "Basic ", "Basic %%%", "Basic bm9jb2xvbg==", "Basic \xff\xfe", "Basic =", "Bearer x"]
)
def test_what_is_not_basic_is_rejected_and_never_an_error(value: str) -> None:
    assert verdict(credential("basic"), call(b"{}", ("Authorization", value))) in (MISSING, MISMATCH)


@pytest.mark.parametrize(
    ("placement", "sent", "why"),
    [
        ("header", call(b"{}", ("Authorization", b"Bearer " + MAIN)), "the main token was sent in Authorization: Bearer"),
        ("header", call(b"{}", query=b"Token=" + SECOND), "the second token was sent in the URL parameter Token"),
        ("header", call(b"{}", ("Authorization", basic("x", MAIN))), "was sent in HTTP Basic, as the password"),
        ("bearer", call(b"{}", ("X-Api-Key", MAIN)), "was sent in the header x-api-key"),
        ("bearer", call(b"{}", ("Authorization", MAIN)), "with no Bearer before it"),
        ("bearer", call(b"{}", ("Authorization", b"Token " + MAIN)), "after another word than Bearer"),
        ("basic", call(b"{}", ("Authorization", basic(MAIN.decode(), b""))), "the token was sent as the username"),
        ("header", call(b"{}", ("X-Api-Key", b'"' + MAIN + b'"')), "it has quotes or blanks around it"),
        ("header", call(b"{}", ("X-Api-Key", b"Bearer " + MAIN)), "it has a word before it"),
    ],
)  # fmt: skip
def test_the_owner_is_told_where_the_right_token_was_instead(placement: str, sent: Call, why: str) -> None:
    answer = credential(placement).check(sent)
    assert isinstance(answer, Unproven) and answer.detail.endswith(why)


def test_a_plus_that_arrives_as_a_blank_is_named() -> None:
    answer = TokenCredential("url", b"a+b/c+d=").check(call(b"{}", query=b"token=a+b/c+d="))
    assert isinstance(answer, Unproven) and answer.detail.endswith("in a URL it is written %2B")


@EVERY_PLACEMENT
def test_a_wrong_token_anywhere_is_not_told_as_nearly_right(placement: str) -> None:
    headers = [("X-Api-Key", b'"x"'), ("Authorization", b"Token x"), ("Authorization", b"Basic \xff")]
    for header in headers:
        answer = credential(placement).check(call(b"{}", header, query=b"a=x&token=x"))
        assert isinstance(answer, Unproven)
        assert not any(hint in answer.detail for hint in ("; the ", ": it"))


def test_only_bearer_and_basic_bring_a_challenge() -> None:
    assert [bool(credential(placement).challenge) for placement in SENT] == [False, True, True, False, False]


@pytest.mark.parametrize(("main", "second"), [(b"", None), (b"x", b"")])
def test_an_empty_token_is_a_configuration_error(main: bytes, second: bytes | None) -> None:
    with pytest.raises(ValueError, match="empty"):
        TokenCredential("header", main, second)


def in_elements(*tokens: bytes) -> Call:
    return call(b'{"value":[' + b",".join(b'{"id":1,"state":%s}' % one for one in tokens) + b"]}")


def test_every_element_of_an_array_has_to_carry_the_token() -> None:
    of_graph = token("body", path="value.state")
    right, quoted = b'"' + MAIN + b'"', b'"another"'
    found, masked = of_graph.check(in_elements(right, right)), b'"%s"' % (b"*" * len(MAIN))
    assert isinstance(found, VerifiedCall) and found.call.body == in_elements(masked, masked).body
    assert verdict(of_graph, in_elements(right, quoted)) == MISMATCH
    one_lacks = call(b'{"value":[{"state":' + right + b"},{}]}")
    for lacks in (in_elements(right, b"null"), in_elements(), one_lacks):
        assert not isinstance(of_graph.check(lacks), VerifiedCall)
    deep = call(b'{"value":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    assert verdict(of_graph, deep) == MISSING


@pytest.mark.parametrize("placement", ["header", "bearer", "basic", "url"])
def test_a_token_that_is_written_into_the_body_as_well_is_not_kept_there(placement: Placement) -> None:
    long, short = b"a token of the tests", b"true"
    body = b'{"sent":true,"with":"%s"}' % long
    asked = TokenCredential(placement, long, short)
    assert asked.body_without_token(call(body)) == body.replace(long, b"*" * len(long))
    by_url = call(body).but(query=b"token=a+token+of+the+tests")
    if placement == "url":
        found = asked.check(by_url)
        assert isinstance(found, VerifiedCall) and long not in found.call.body


def test_a_token_in_the_body_is_neither_kept_nor_handed_on() -> None:
    of_body = token("body")
    twice = b'{"token":"%s","note":"%s"}' % (MAIN, MAIN)
    for body in (twice, b"token=" + SECOND, b'{"token":"old-token-1"}'):
        stored = of_body.body_without_token(call(body))
        assert stored is not None and len(stored) == len(body) and b"-token-" not in stored
    packed = call(b"x", ("Content-Encoding", "gzip"))
    assert of_body.body_without_token(packed) is None and verdict(of_body, packed) == MISSING
