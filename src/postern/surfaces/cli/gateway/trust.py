"""The certificates that a command trusts, and why a request got no answer."""

import os
import ssl


def trusted(url: str) -> ssl.SSLContext:
    """Returns the certificates of the machine. Reading them takes 30 ms, so an address without TLS gets none."""
    import httpx2  # commands that make no request over the network load this file too

    if url.lower().startswith("http://"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx2.create_ssl_context()


def reason(error: BaseException) -> str:
    """Says in a few words why a request failed: the innermost error knows best."""
    import httpx2

    if isinstance(error, httpx2.TimeoutException):
        return "it did not answer in time"
    chain: list[BaseException] = []
    inner: BaseException | None = error
    while inner is not None and inner not in chain:
        chain.append(inner)
        # Several addresses were tried: the first error speaks for all.
        inner = (
            inner.exceptions[0]
            if isinstance(inner, BaseExceptionGroup)
            else inner.__cause__ or inner.__context__
        )
    for one in chain:
        if isinstance(one, ssl.SSLCertVerificationError):
            return f"its TLS certificate is not valid here: {one.verify_message}"
    for one in reversed(chain):
        if isinstance(one, OSError) and one.strerror:
            # For a refused connection asyncio names the address alone.
            if one.errno and one.errno > 0 and not isinstance(one, ssl.SSLError):
                return os.strerror(one.errno)
            return one.strerror
    return str(error) or type(error).__name__
