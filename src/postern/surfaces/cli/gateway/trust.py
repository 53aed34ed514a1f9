"""Which certificates a client of a command trusts."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


def trusted(url: str) -> "ssl.SSLContext | bool":
    """True: those of the machine. To read them takes 30 ms, and without TLS they are no use: then it is nobody's."""
    import ssl  # commands that have no client load this file too

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if url.lower().startswith("http://") else True
