"""For a client that speaks to a program on this machine, without TLS."""

import ssl

WITHOUT_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""It trusts nobody. A client of httpx2 that is given none reads all certificates that are trusted, which takes several times as
long as the request: ``httpx2.get(…, verify=WITHOUT_TLS)``."""
