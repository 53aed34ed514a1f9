"""Which headers, parameters and usernames a user may choose."""

from typing import Any

import pytest

from postern.core.names import (
    header_name_problem,
    parameter_name_problem,
    sent_header_problem,
    username_problem,
)

_SET_BY_OTHERS = """
Host Cookie Set-Cookie Connection Transfer-Encoding TE Upgrade Forwarded Via X-Real-IP True-Client-IP X-Client-IP
X-Request-Id X-Signature Origin Referer User-Agent Traceparent Tracestate Keep-Alive Trailer Expect Date Server Range
Priority Early-Data DNT Save-Data Pragma Cache-Control Max-Forwards Upgrade-Insecure-Requests HTTP2-Settings Baggage
B3 Uber-Trace-Id Warning X-Requested-With Client-IP CDN-Loop X-Forwarded Forwarded-For X-Host X-Cluster-Client-IP
X-ProxyUser-Ip X-Originating-IP X-Correlation-Id X-Real-Port X-HTTP-Method-Override X-Rewrite-URL X-Served-By X-Timer
X-Varnish X-Cache X-Forwarded-For X-Webhook-Id CF-Connecting-IP Content-Type Proxy-Authorization Sec-Fetch-Site Accept
Accept-Language X-Vercel-Id Fastly-Client-IP Access-Control-Request-Method X-Invocation-Id X-Envoy-External-Address
X-AppEngine-Country If-Match Fly-Client-IP WL-Proxy-Client-IP X-Original-Host X-Original-Forwarded-For X-Remote-Addr
X-B3-TraceId X-Cloud-Trace-Context X-Datadog-Trace-Id X-ARR-LOG-ID X-Nf-Client-Connection-Ip Incap-Client-IP
X-Client-Data X-Accel-Redirect Ali-Cdn-Real-Ip X-Scheme X-Request-Start X-Iinfo X-ImForwards Remote-Addr X-Forward-For
X-Coming-From DO-Connecting-IP X-Sendfile X-Amzn-Trace-Id X-Postern-Test X-Url-Scheme Front-End-Https X-Country-Code
X-Azure-ClientIP X-Akamai-Edgescape X-FD-HealthProbe X-SSL-Client-Cert Tailscale-User-Login X-Heroku-Dynos
X-Edge-Location X-Render-Origin-Server Surrogate-Capability Surrogate-Key CloudFront-Viewer-Country CDN-RequestId X-Amz-Cf-Pop
X-AppEngine-City X-Azure-SocketIP X-MS-Client-Principal
"""


_FREE = """
X-Api-Key X-Shop-Token Token apikey X-Hook-Secret-2 X-Gitlab-Token X-Goog-Channel-Token X-Client-Id X-Client-Secret
X-Original-Token X-Cloud-Token X-Edge-Token X-Proxy-Token X-Akamai-Token X-Azure-Token X-Amz-Token X-Vercel-Token X-Support
"""


@pytest.mark.parametrize("name", _SET_BY_OTHERS.split())
def test_what_proxies_and_browsers_set_is_reserved_in_any_case(name: str) -> None:
    for written in (name, name.lower(), name.upper()):
        assert "is reserved" in (header_name_problem(written) or "")


@pytest.mark.parametrize("name", _FREE.split())
def test_a_name_that_senders_use_is_free(name: str) -> None:
    assert header_name_problem(name) is None


@pytest.mark.parametrize("name", ["_under_score", "X_Api_Key", "X.Key", "X Key", "", "é", "x" * 101])
def test_a_name_that_a_proxy_would_drop_is_refused(name: str) -> None:
    assert "letters, digits and hyphens" in (header_name_problem(name) or "")


_NOT_SENT_ALONG = """
Host Connection Content-Length Transfer-Encoding TE Trailer Upgrade Keep-Alive Expect Accept-Encoding Proxy-Connection
If-None-Match
"""


def test_what_belongs_to_the_gateways_own_request_is_not_sent_along() -> None:
    for name in _NOT_SENT_ALONG.split():
        assert "itself" in (sent_header_problem(name) or "")
    assert sent_header_problem("Authorization") is None
    assert "letters" in (sent_header_problem("a b") or "")


@pytest.mark.parametrize(
    ("problem", "taken", "refused"),
    [
        (parameter_name_problem, ("token", "a[b]~.-_9", "t" * 100), ("t" * 101, "a b", "", "a&b")),
        (username_problem, ("a", "n" * 100), ("", "n" * 101, "a:b", "a\tb")),
    ],
)
def test_a_parameter_and_a_username_of_ones_own(problem: Any, taken: Any, refused: Any) -> None:
    assert [problem(name) for name in taken] == [None] * len(taken)
    assert all(problem(name) for name in refused)


def test_authorization_is_a_placement_of_its_own() -> None:
    for name in ("Authorization", "authorization"):
        assert "Bearer and Basic" in str(header_name_problem(name))
