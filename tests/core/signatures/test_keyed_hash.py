"""The hash that signatures are compared with is the standard library's HMAC-SHA256."""

import hmac

from hypothesis import example, given
from hypothesis import strategies as st

from postern.core.signatures.signature import KeyedHash


@given(key=st.binary(max_size=200), contents=st.lists(st.binary(max_size=300), min_size=1, max_size=3))
@example(key=b"", contents=[b""])
@example(key=b"k" * 64, contents=[b"a", b"a"])
@example(key=b"k" * 65, contents=[b"a" * 64, b"b" * 4096])
def test_it_is_the_librarys(key: bytes, contents: list[bytes]) -> None:
    keyed = KeyedHash(key)
    for content in contents:
        assert keyed.of(content) == hmac.digest(key, content, "sha256")
