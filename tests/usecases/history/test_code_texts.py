"""What a copied call says, word by word, where no shell and no program need be asked."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from postern.core.history.invocation import Invocation
from postern.usecases.history.code import LONGEST_ARGUMENT, WRITERS, Language, printed, repeated

BASE = "https://hooks.example.com"


def written(language: Language) -> Callable[[str, Invocation], str]:
    return lambda base, call: WRITERS[language](repeated(base, call))


curl, python = written("curl"), written("python")


def recorded(
    *headers: tuple[str, str],
    method: str = "POST",
    path: bytes = b"/webhook/a",
    query: bytes = b"",
    body: bytes | None = b"",
    body_size: int | None = None,
) -> Invocation:
    size = len(body or b"") if body_size is None else body_size
    return Invocation(
        "inv_1", "wh_1", 0.0, "accepted", "accepted", 200, 1, method, path, query,
        msgspec.json.encode(headers), body, size, "127.0.0.1", 1, "", "", b"[]",
    )  # fmt: skip


def test_what_belonged_to_the_connection_is_not_repeated_and_the_rest_is_as_it_came() -> None:
    own = ("Host", "Content-Length", "Connection", "Transfer-Encoding", "Accept-Encoding", "Expect")
    own += ("Keep-Alive", "TE", "Upgrade")
    call = repeated(
        BASE,
        recorded(
            *((name, "1") for name in own),
            ("X-Two", " a\t"),
            ("X-Two", "\xe9"),
            ("not a name", "x"),
            ("Content-Type", "text/plain"),
            query=b"a=1#\xff b",
            body=b"x",
        ),
    )
    assert call.headers == [("X-Two", b"a"), ("X-Two", b"\xe9"), ("Content-Type", b"text/plain")]
    assert (call.method, call.url) == ("POST", f"{BASE}/webhook/a?a=1%23%FF%20b")
    assert (call.body, call.body_gone, call.placeholders) == (b"x", False, ())
    assert repeated(BASE, recorded()).url == f"{BASE}/webhook/a"


def test_each_secret_that_was_masked_is_one_placeholder() -> None:
    call = repeated(
        BASE,
        recorded(
            ("X-Api-Key", "***"),
            ("authorization", "***"),
            ("x-api-key", "***"),
            ("X-Not", "a***"),
            query=b"t=***&u=***",
        ),
    )
    assert call.placeholders == ("YOUR_TOKEN", "YOUR_X_API_KEY", "YOUR_AUTHORIZATION")
    key, authorization = b"YOUR_X_API_KEY", b"YOUR_AUTHORIZATION"
    assert [value for _, value in call.headers] == [key, authorization, key, b"a***"]
    assert call.url.endswith("?t=YOUR_TOKEN&u=YOUR_TOKEN")


@pytest.mark.parametrize(
    ("body", "size", "gone"), [(None, 0, False), (None, 1, True), (b"", 1, False), (b"x", 1, False)]
)
def test_a_body_is_gone_where_there_was_one(body: bytes | None, size: int, gone: bool) -> None:
    assert repeated(BASE, recorded(body=body, body_size=size)).body_gone is gone


def test_what_a_schedule_fetched_is_the_address_alone() -> None:
    call = recorded(("server", "x"), path=b"http://10.1.2.3/orders?a=[1]", body=b"{}")
    program = repeated(BASE, call)
    assert (program.method, program.url) == ("GET", "http://10.1.2.3/orders?a=[1]")
    assert (program.headers, program.body, program.body_gone, program.placeholders) == ([], b"", False, ())
    assert curl(BASE, call) == "curl --globoff 'http://10.1.2.3/orders?a=[1]'"
    secure = python(BASE, recorded(path=b"https://10.1.2.3:8443"))
    assert "from http.client import HTTPSConnection\n" in secure
    assert "HTTPSConnection('10.1.2.3:8443', timeout=60)" in secure
    assert "putrequest('GET', '/', skip_accept_encoding=True)" in secure


def lines(text: str) -> list[str]:
    return text.split(" \\\n  ")


def test_as_curl() -> None:
    head = f"curl {BASE}/webhook/a"
    json = ("content-type", "application/json")
    assert lines(curl(BASE, recorded(method="GET"))) == [head]
    assert lines(curl(BASE, recorded())) == [head.replace("curl", "curl -X POST")]
    assert lines(curl(BASE, recorded(method="GET", body=b"x")))[0] == head.replace("curl", "curl -X GET")
    assert lines(curl(BASE, recorded(query=b"a={1,2}", body=b"x")))[0] == (
        f"curl --globoff '{BASE}/webhook/a?a={{1,2}}'"
    )
    assert lines(curl(BASE, recorded(body=b"x"))) == [head, "-H Content-Type:", "--data-raw x"]
    assert lines(curl(BASE, recorded(method="HEAD"))) == [head.replace("curl", "curl --head")]
    assert lines(curl(BASE, recorded(method="A B")))[0].startswith("curl -X 'A B' ")
    assert lines(curl(BASE, recorded(body=None, body_size=2))) == [
        head,
        "--data-raw THE_BODY_IS_NO_LONGER_KEPT",
    ]
    longest = b"x" * LONGEST_ARGUMENT
    assert lines(curl(BASE, recorded(json, body=longest)))[2] == f"--data-raw {longest.decode()}"
    longer = lines(curl(BASE, recorded(json, body=longest + b"x")))
    assert (longer[0], longer[2]) == (f"{printed(longest + b'x')} | {head}", "--data-binary @-")


def test_as_python() -> None:
    def program(*headers: tuple[str, str], **given: Any) -> list[str]:
        return python("http://127.0.0.1:8080", recorded(*headers, **given)).split("\n")

    assert program(body=None, body_size=1)[2] == "# The body is no longer kept: this call goes without it."
    assert program(("x-key", "***"))[2] == "# Masked when the call was stored, to be filled in: YOUR_X_KEY"
