"""Names that a user may choose for headers, parameters and usernames, and header names that are reserved."""

import re

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# HTTP allows more characters, but proxies drop such names: nginx those with an underscore.
_OWN_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
_PARAMETER = re.compile(r"[A-Za-z0-9._~\-\[\]]{1,100}")

# Proxies, CDNs, browsers or the gateway itself set, remove or read these: a token there would be lost, leaked or forged. Whole
# names, because senders use the same prefixes for their tokens (X-Goog-Channel-Token, X-Client-Secret).
_RESERVED = {
    "host", "authorization", "cookie", "set-cookie", "connection", "transfer-encoding", "te", "upgrade", "forwarded", "via", "x-real-ip",
    "x-request-id", "x-signature", "origin", "referer", "user-agent", "traceparent", "tracestate", "keep-alive",
    "trailer", "expect", "date", "server", "range", "priority", "early-data", "dnt", "save-data", "pragma", "cache-control", "max-forwards",
    "upgrade-insecure-requests", "http2-settings", "baggage", "b3", "uber-trace-id", "warning", "x-requested-with",
    "x-forwarded", "x-correlation-id", "x-http-method-override", "x-rewrite-url", "x-served-by", "x-timer", "x-varnish", "x-cache",
    "x-request-start", "x-iinfo", "x-imforwards", "remote-addr", "x-coming-from", "x-sendfile", "x-accel-redirect", "x-original-url",
    "x-url-scheme", "front-end-https", "x-country-code", "cdn-loop", "x-client-data", "x-azure-clientip", "x-akamai-edgescape",
    "x-fd-healthprobe", "x-ssl-client-cert", "ssl-client-verify", "x-tailscale-user", "tailscale-user-login", "x-sucuri-clientip", "x-trace-id",
    "x-edge-id", "x-render-id", "x-heroku-dynos", "x-railway-edge", "akamai-origin-hop", "edge-control", "x-edge-location", "x-edge-request-id", "x-render-origin-server", "x-amz-cf-pop",
    "x-azure-socketip", "x-azure-requestchain", "x-ms-client-principal", "eagleeye-traceid", "x-remote-addr", "x-remote-user", "x-amz-cf-id", "x-amzn-trace-id", "x-azure-ref",
    "x-azure-fdid", "x-vercel-id", "x-cloud-trace-context", "x-appengine-country", "x-arr-log-id", "x-arr-ssl", "true-client-ip",
    "x-nf-request-id", "x-datadog-trace-id", "x-datadog-parent-id",
}  # fmt: skip
_RESERVED_PREFIXES = (
    "x-forwarded-", "x-webhook-", "cf-", "content-", "proxy-", "sec-", "accept", "access-control-", "x-invocation-", "if-", "x-envoy-", "x-b3-", "x-postern-",
    "surrogate-", "cloudfront-", "cdn-", "x-appengine-",
)  # fmt: skip
_RESERVED_SUFFIXES = ("-ip", "-for", "-host", "-proto", "-port", "-scheme", "-addr")
"""Proxies write the client and its request into headers like these."""


def is_header_name(text: str) -> bool:
    return _HEADER.fullmatch(text) is not None


def header_name_problem(name: str) -> str | None:
    """Says what is wrong with this name for the header that carries a token."""
    if not _OWN_HEADER.fullmatch(name):
        return "a header name has 1 to 100 letters, digits and hyphens, like X-Api-Key"
    lowered = name.lower()
    if lowered == "authorization":
        return "Authorization is used through the Bearer and Basic placements only"
    if lowered in _RESERVED or lowered.startswith(_RESERVED_PREFIXES) or lowered.endswith(_RESERVED_SUFFIXES):
        return f"{name} is reserved: proxies, browsers or the gateway itself set it; choose a name like X-Api-Key"
    return None


OF_THE_CONNECTION = {
    "host", "connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "content-length",
    "expect",
}  # fmt: skip
"""Headers of one connection. A program that repeats the request sets them anew."""


def sent_header_problem(name: str) -> str | None:
    """Says what is wrong with this name for a header that a schedule sends."""
    if not is_header_name(name):
        return "a header name has 1 to 100 letters, digits and hyphens, like Authorization"
    if name.lower() in {*OF_THE_CONNECTION, "accept-encoding"} or name.lower().startswith(("proxy-", "if-")):
        return f"the gateway sets {name} itself"
    return None


def parameter_name_problem(name: str) -> str | None:
    if not _PARAMETER.fullmatch(name):
        return "a parameter name has 1 to 100 letters, digits and . _ ~ -"
    return None


def username_problem(name: str) -> str | None:
    if not 1 <= len(name) <= 100 or ":" in name or not name.isprintable():
        return "a username has 1 to 100 printable characters and no colon"
    return None
