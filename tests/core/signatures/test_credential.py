"""The static token in each of its placements."""

from base64 import b64encode

import pytest

from postern.core.calls.call import Call
from postern.core.signatures.credential import TokenCredential, Unproven, VerifiedCall
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
EVERY_PLACEMENT = pytest.mark.parametrize("placement", SENT)


def credential(placement: str) -> TokenCredential:
    return token(placement, username="shop")


@EVERY_PLACEMENT
def test_the_main_token_proves_its_sender(placement: str) -> None:
    answer = credential(placement).check(SENT[placement](MAIN))
    assert isinstance(answer, VerifiedCall) and answer.matched == "main"


@EVERY_PLACEMENT
def test_the_second_token_is_accepted_alongside_and_recognised(placement: str) -> None:
    answer = credential(placement).check(SENT[placement](SECOND))
    assert isinstance(answer, VerifiedCall) and answer.matched == "second"


@EVERY_PLACEMENT
def test_a_wrong_token_is_a_mismatch(placement: str) -> None:
    assert _code(credential(placement), SENT[placement](b"another")) == "credential_mismatch"


@EVERY_PLACEMENT
def test_no_token_is_missing_and_not_wrong(placement: str) -> None:
    assert _code(credential(placement), call(b"{}")) == "credential_missing"


@EVERY_PLACEMENT
def test_without_a_second_token_the_main_one_alone_counts(placement: str) -> None:
    alone = token(placement, None, username="shop")
    assert isinstance(alone.check(SENT[placement](MAIN)), VerifiedCall)
    assert _code(alone, SENT[placement](SECOND)) == "credential_mismatch"


def test_a_token_sent_twice_is_rejected_even_if_one_is_right() -> None:
    assert (
        _code(token("header"), call(b"{}", ("X-Api-Key", MAIN), ("X-Api-Key", b"other")))
        == "credential_mismatch"
    )


def test_the_header_name_is_case_insensitive_and_the_users_own() -> None:
    assert isinstance(
        token("header", header_name="X-Shop-KEY").check(call(b"{}", ("x-shop-key", MAIN))), VerifiedCall
    )


def test_the_name_of_the_scheme_is_case_insensitive() -> None:
    assert isinstance(token("bearer").check(call(b"{}", ("Authorization", b"bEaReR " + MAIN))), VerifiedCall)


def test_a_basic_password_may_hold_colons() -> None:
    secret = b"a:b:c"
    own = TokenCredential("basic", secret, username="shop")
    assert isinstance(own.check(call(b"{}", ("Authorization", basic("shop", secret)))), VerifiedCall)


def test_the_right_password_of_another_user_is_a_mismatch() -> None:
    assert (
        _code(credential("basic"), call(b"{}", ("Authorization", basic("somebody", MAIN))))
        == "credential_mismatch"
    )


@pytest.mark.parametrize(
    "value", ["Basic", "Basic ", "Basic %%%", "Basic bm9jb2xvbg==", "Basic \xff\xfe", "Basic =", "Bearer x"]
)
def test_what_is_not_basic_is_rejected_and_never_an_error(value: str) -> None:
    assert _code(credential("basic"), call(b"{}", ("Authorization", value))) in (
        "credential_missing",
        "credential_mismatch",
    )


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


def test_a_percent_encoded_url_token_is_the_token() -> None:
    own = TokenCredential("url", b"a b+c/d")
    assert isinstance(own.check(call(b"{}", query=b"token=a%20b%2Bc%2Fd")), VerifiedCall)


def test_only_bearer_and_basic_bring_a_challenge() -> None:
    assert [bool(credential(placement).challenge) for placement in SENT] == [False, True, True, False, False]


@pytest.mark.parametrize(("main", "second"), [(b"", None), (b"x", b"")])
def test_an_empty_token_is_a_configuration_error(main: bytes, second: bytes | None) -> None:
    with pytest.raises(ValueError, match="empty"):
        TokenCredential("header", main, second)


def _code(credential: TokenCredential, sent: Call) -> str:
    answer = credential.check(sent)
    assert isinstance(answer, Unproven)
    return answer.code


def in_elements(*tokens: bytes) -> Call:
    return call(b'{"value":[' + b",".join(b'{"id":1,"state":%s}' % one for one in tokens) + b"]}")


def test_every_element_of_an_array_has_to_carry_the_token() -> None:
    of_graph = token("body", path="value.state")
    right, quoted = b'"' + MAIN + b'"', b'"another"'
    found = of_graph.check(in_elements(right, right))
    assert (
        isinstance(found, VerifiedCall)
        and found.call.body == in_elements(*[b'"%s"' % (b"*" * len(MAIN))] * 2).body
    )
    assert _code(of_graph, in_elements(right, quoted)) == "credential_mismatch"
    for lacks in (
        in_elements(right, b"null"),
        in_elements(),
        call(b'{"value":[{"state":' + right + b"},{}]}"),
    ):
        assert not isinstance(of_graph.check(lacks), VerifiedCall)
    deep = call(b'{"value":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    assert _code(of_graph, deep) == "credential_missing"


def test_a_token_in_the_body_is_neither_kept_nor_handed_on() -> None:
    of_body = token("body")
    for body in (
        b'{"token":"%s","note":"%s"}' % (MAIN, MAIN),
        b"token=" + SECOND,
        b'{"token":"old-token-1"}',
    ):
        stored = of_body.body_without_token(call(body))
        assert stored is not None and len(stored) == len(body) and b"-token-" not in stored
    packed = call(b"x", ("Content-Encoding", "gzip"))
    assert of_body.body_without_token(packed) is None and _code(of_body, packed) == "credential_missing"
