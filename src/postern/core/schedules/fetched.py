"""What a schedule fetched, as the calls it stands for."""

from collections.abc import Iterable

import msgspec

from postern.core.calls.call import Call, Headers

MOST_ELEMENTS = 1000

_ARRAY = msgspec.json.Decoder(list[msgspec.Raw])

# They tell how the bytes travelled. What is stored is what came out of them.
_OF_THE_JOURNEY = frozenset(
    {b"content-encoding", b"content-length", b"transfer-encoding", b"connection", b"keep-alive"}
)


def calls_in(
    url: str, host: str, headers: Headers, body: bytes, at: float, split_array: bool
) -> list[Call] | str:
    """One call, or one for each element of an array where that was chosen; or why it cannot be divided."""
    kept = tuple((name, value) for name, value in headers if name not in _OF_THE_JOURNEY)
    bodies: Iterable[bytes] = (body,)
    text = body.removeprefix(b"\xef\xbb\xbf").lstrip()
    if split_array and text[:1] == b"[":
        try:
            elements = _ARRAY.decode(text)
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            return f"the answer is not valid JSON: {error}"
        if len(elements) > MOST_ELEMENTS:
            return f"an array of {len(elements)} elements; one run takes at most {MOST_ELEMENTS}"
        bodies = [bytes(element) for element in elements]
    # A query may hold what nobody should read in the history.
    path = url.partition("?")[0].encode("ascii", "replace")
    return [Call("GET", path, b"", kept, one, host, at) for one in bodies]
