"""A random scheme, a call that is signed here without the program's help, and every byte of what was signed changed."""

import base64
import hmac
from datetime import UTC, datetime
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from postern.core.calls.call import Call
from postern.core.signatures.credential import Unproven, VerifiedCall
from postern.core.signatures.scheme import SignatureScheme
from postern.core.signatures.signature import SignatureCredential

NOW = 1_700_000_000
HOST = "https://hooks.example.com"
TIMES = {
    "unix": f"{NOW}",
    "unix_ms": f"{NOW}000",
    "iso8601": datetime.fromtimestamp(NOW, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    "http_date": datetime.fromtimestamp(NOW, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT"),
}
ENCODE = {
    "hex": lambda made: made.hex(),
    "base64": lambda made: base64.b64encode(made).decode(),
    "base64url": lambda made: base64.urlsafe_b64encode(made).decode().rstrip("="),
    "auto": lambda made: base64.b64encode(made).decode(),
}
FORMS = ["", "*:{signature}", "*/SHA256/{signature}", ":{signature}:", "<{signature}>", "a*b{signature}c"]
WORDS = st.text("abcdefgh0123456789-_", min_size=1, max_size=12)
LITERALS = ["", ".", ":", "|", "\n", "v0:", "{{", "é"]


@st.composite
def signed_calls(draw: st.DrawFn) -> tuple[dict[str, Any], bytes, dict[str, Any]]:
    """A scheme, its secret, and the parts of a call that a sender has signed by it."""
    algorithm = draw(st.sampled_from(["sha1", "sha256", "sha512"]))
    key, form = draw(st.binary(min_size=8, max_size=40)), draw(st.sampled_from(FORMS))
    assume(key.strip(b"\0"))
    how = draw(st.sampled_from(["utf8", "base64", "hex"]))
    secret = {"utf8": key, "base64": base64.b64encode(key), "hex": key.hex().encode()}[how]
    items, keys = draw(st.sampled_from([("", ""), (",", "="), (";", "="), (" ", ","), ("&", "|"), ("", "=")]))
    encoding = draw(st.sampled_from(list(ENCODE)))
    kind = draw(st.sampled_from(list(TIMES)))
    time = TIMES[kind]
    call: dict[str, Any] = {
        "body": draw(st.binary(max_size=60)),
        "header": draw(WORDS),
        "parameter": draw(WORDS),
        "id": draw(WORDS),
        "time": time,
        "method": draw(st.sampled_from(["POST", "PUT"])),
    }
    values = {
        "{body}": call["body"],
        "{timestamp}": time.encode(),
        "{id}": call["id"].encode(),
        "{header:X-A}": call["header"].encode(),
        "{query:q}": call["parameter"].encode(),
        "{method}": call["method"].encode(),
        "{url}": f"{HOST}/webhook/abc?q={call['parameter']}".encode(),
    }
    tokens = draw(st.lists(st.sampled_from(list(values)), min_size=1, max_size=4, unique=True))
    template, content = "", b""
    for token in tokens:
        literal = draw(st.sampled_from(LITERALS))
        template, content = template + literal + token, content + literal.replace("{{", "{").encode()
        content += values[token]
    made = ENCODE[encoding](hmac.digest(key, content, algorithm))
    inside = form.replace("*", draw(st.sampled_from(["", "1", "key_2"]))).replace("{signature}", made) or made
    scheme: dict[str, Any] = {
        "signature": "header:X-Signature",
        "algorithm": f"hmac_{algorithm}",
        "encoding": encoding,
        "secretEncoding": how,
        "itemSeparator": items,
        "keySeparator": keys,
        "signatureKey": "v1" if keys else "",
        "signatureForm": form,
        "signedContent": template,
        "timestamp": "header:X-Time",
        "timestampFormat": kind,
        "deliveryId": "header:X-Id",
    }
    others = draw(st.lists(st.sampled_from(["v0=00", "t=1", "v1=zz", ""]), max_size=2)) if items else []
    shown = [f"v1{keys}{inside}" if keys else inside, *(one.replace("=", keys) for one in others if keys)]
    call["signature"] = items.join(draw(st.permutations(shown)))
    call["signs"] = tokens
    return scheme, secret, call


def made(call: dict[str, Any]) -> Call:
    named = {"x-signature": "signature", "x-time": "time", "x-id": "id", "x-a": "header"}
    headers = tuple((name.encode(), call[part].encode()) for name, part in named.items())
    query = f"q={call['parameter']}".encode()
    return Call(call["method"], b"/webhook/abc", query, headers, call["body"], "192.0.2.1", float(NOW), HOST)


CARRIED = {
    "{body}": ["body"],
    "{timestamp}": ["time"],
    "{id}": ["id"],
    "{header:X-A}": ["header"],
    "{query:q}": ["parameter"],
    "{method}": ["method"],
    "{url}": ["parameter"],
}


@given(signed_calls(), st.data())
def test_a_random_scheme_takes_what_was_signed_and_nothing_that_was_changed(
    drawn: tuple[dict[str, Any], bytes, dict[str, Any]], data: st.DataObject
) -> None:
    document, secret, call = drawn
    credential = SignatureCredential(SignatureScheme.from_document(document), secret)
    found = credential.check(made(call))
    if isinstance(found, Unproven) and "which divides it from its neighbours" in found.detail:
        return  # a value that holds the text beside it is refused, whoever signed it
    assert isinstance(found, VerifiedCall), found

    part = data.draw(st.sampled_from(sorted({part for token in call["signs"] for part in CARRIED[token]})))
    value = call[part]
    if part == "method":
        other = {"POST": "PUT", "PUT": "POST"}[value]
    elif isinstance(value, bytes):
        at = data.draw(st.integers(0, len(value)))
        other = value[:at] + bytes([(value[at] if at < len(value) else 0) ^ 1]) + value[at + 1 :]
    else:
        at = data.draw(st.integers(0, len(value) - 1))
        other = value[:at] + ("1" if value[at] != "1" else "2") + value[at + 1 :]
    assert isinstance(credential.check(made(call | {part: other})), Unproven), (document, part)
    wrong = SignatureCredential(SignatureScheme.from_document(document), b"abcdef0123456789")
    assert isinstance(wrong.check(made(call)), Unproven)
