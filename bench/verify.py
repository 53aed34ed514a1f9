"""What a signature check costs beside the HMAC that it cannot do without: `python -m bench.verify`."""

import base64
import hashlib
import hmac
import statistics
import timeit

from postern import presets
from postern.core.calls.call import Call
from postern.core.signatures.credential import VerifiedCall
from postern.core.signatures.signature import SignatureCredential

BODY = b'{"order":{"number":"1001"},"pad":"' + b"x" * 2010 + b'"}'
SECRET, AT = b"bench-secret", 1_700_000_000
OTHERS = tuple((f"x-header-{number}".encode(), b"some value") for number in range(8))


def _mac(content: bytes, key: bytes = SECRET) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()


def _signed() -> dict[str, tuple[bytes, tuple[tuple[bytes, bytes], ...]]]:
    stamp = str(AT).encode()
    key = base64.b64encode(SECRET)
    standard = base64.b64encode(_mac(b"msg_1." + stamp + b"." + BODY))
    return {
        "shopify": (SECRET, ((b"x-shopify-hmac-sha256", base64.b64encode(_mac(BODY))),)),
        "github": (SECRET, ((b"x-hub-signature-256", b"sha256=" + _mac(BODY).hex().encode()),)),
        "stripe": (
            SECRET,
            ((b"stripe-signature", b"t=" + stamp + b",v1=" + _mac(stamp + b"." + BODY).hex().encode()),),
        ),
        "standardwebhooks": (
            key,
            (
                (b"webhook-id", b"msg_1"),
                (b"webhook-timestamp", stamp),
                (b"webhook-signature", b"v1," + standard),
            ),
        ),
    }


def _microseconds(action: object, times: int = 4000) -> float:
    return statistics.median(timeit.repeat(action, number=times, repeat=7)) / times * 1e6  # type: ignore[arg-type]


def main() -> None:
    keyed = hmac.new(SECRET, digestmod=hashlib.sha256)

    def bare() -> bytes:
        copy = keyed.copy()
        copy.update(BODY)
        return copy.digest()

    alone = _microseconds(bare)
    print(
        f"a body of {len(BODY)} bytes; HMAC alone {alone:.1f} µs\n\n| scheme | check µs | own µs | times HMAC |\n|---|---:|---:|---:|"
    )
    for name, (secret, headers) in _signed().items():
        credential = SignatureCredential(presets.load()[name].scheme, secret)
        call = Call("POST", b"/webhook/x", b"", (*OTHERS, *headers), BODY, "192.0.2.1", float(AT))
        assert isinstance(credential.check(call), VerifiedCall), name
        took = _microseconds(lambda credential=credential, call=call: credential.check(call))
        print(f"| {name} | {took:.1f} | {took - alone:.1f} | {took / alone:.1f} |")


if __name__ == "__main__":
    main()
