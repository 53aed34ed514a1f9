"""Names a user may choose: headers, parameters, usernames; and the header names that are not theirs to
take."""

import re

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
# Fewer characters than HTTP allows: proxies drop names with others, nginx those with an underscore.
_OWN_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")
_PARAMETER = re.compile(r"[A-Za-z0-9._~\-\[\]]{1,100}")

# Set, removed or read by proxies, CDNs, browsers or the gateway itself: a token there would be lost, leaked
# or forged.
_RESERVED = {
    "host", "authorization", "cookie", "set-cookie", "connection", "transfer-encoding", "te", "upgrade", "forwarded", "via", "x-real-ip",
    "x-request-id", "x-signature", "origin", "referer", "user-agent", "traceparent", "tracestate", "keep-alive",
    "trailer", "expect", "date", "server", "range", "priority", "early-data", "dnt", "save-data", "pragma", "cache-control", "max-forwards",
    "upgrade-insecure-requests", "http2-settings", "baggage", "b3", "uber-trace-id", "warning", "x-requested-with", "client-ip",
    "x-forwarded", "forwarded-for", "x-host", "x-cluster-client-ip", "x-proxyuser-ip", "x-originating-ip", "x-correlation-id", "x-real-port",
    "x-http-method-override", "x-rewrite-url", "x-served-by", "x-timer", "x-varnish", "x-cache",
    "x-scheme", "x-request-start", "x-iinfo", "x-imforwards", "remote-addr", "x-forward-for", "x-coming-from", "do-connecting-ip", "x-sendfile",
}  # fmt: skip
_RESERVED_PREFIXES = (
    "x-forwarded-", "x-webhook-", "cf-", "content-", "proxy-", "sec-", "accept", "x-amz-", "x-azure-", "x-vercel-", "fastly-", "akamai-",
    "access-control-", "x-invocation-", "x-envoy-", "x-goog-", "x-appengine-", "if-", "cdn-", "fly-", "true-", "edge-", "surrogate-", "wl-proxy-",
    "x-original-", "x-remote-", "x-b3-", "x-cloud-", "x-datadog-", "x-trace-", "x-arr-", "x-nf-", "x-sucuri-", "x-akamai-", "x-edge-", "incap-",
    "x-proxy-", "x-client-", "x-accel-", "ali-", "eagleeye-", "x-ms-", "x-bluecoat-", "x-railway-", "x-render-", "x-heroku-",
    "x-amzn-", "x-fd-", "x-fastly-", "x-tailscale-", "tailscale-", "x-ngrok-", "ngrok-", "x-ssl-", "ssl-", "x-google-", "x-postern-",
)  # fmt: skip


def is_header_name(text: str) -> bool:
    return _HEADER.fullmatch(text) is not None


def header_name_problem(name: str) -> str | None:
    """What is wrong with this as the header that carries a token, or None."""
    if not _OWN_HEADER.fullmatch(name):
        return "a header name has 1 to 100 letters, digits and hyphens, like X-Api-Key"
    lowered = name.lower()
    if lowered == "authorization":
        return "Authorization is used through the Bearer and Basic placements only"
    if lowered in _RESERVED or lowered.startswith(_RESERVED_PREFIXES):
        return f"{name} is reserved: proxies, browsers or the gateway itself set it; choose a name like X-Api-Key"
    return None


_NOT_SENT = {
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "keep-alive",
    "expect",
    "accept-encoding",
}


def sent_header_problem(name: str) -> str | None:
    """What is wrong with this as a header that a schedule sends along, or None."""
    if not is_header_name(name):
        return "a header name has 1 to 100 letters, digits and hyphens, like Authorization"
    if name.lower() in _NOT_SENT or name.lower().startswith(("proxy-", "if-")):
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
