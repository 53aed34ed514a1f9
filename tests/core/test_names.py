"""Which header may carry a webhook's token."""

import pytest

from postern.core.webhooks.names import header_name_problem

SET_BY_OTHERS = [
    "Host",
    "Cookie",
    "X-Forwarded-For",
    "X-Webhook-Id",
    "CF-Connecting-IP",
    "CDN-Loop",
    "Client-IP",
    "Fly-Client-IP",
    "X-Cluster-Client-IP",
    "X-Original-Forwarded-For",
    "X-Original-Host",
    "X-Forwarded",
    "X-Remote-Addr",
    "Incap-Client-IP",
    "Ali-Cdn-Real-Ip",
    "X-Sucuri-ClientIP",
    "X-Nf-Client-Connection-Ip",
    "X-ARR-LOG-ID",
    "X-Cloud-Trace-Context",
    "X-B3-TraceId",
    "Range",
    "If-Match",
    "Priority",
]


@pytest.mark.parametrize("name", SET_BY_OTHERS)
def test_what_proxies_and_browsers_set_is_reserved_in_any_case(name: str) -> None:
    for written in (name, name.lower(), name.upper()):
        assert "is reserved" in (header_name_problem(written) or "")


@pytest.mark.parametrize(
    "name", ["X-Api-Key", "X-Shop-Token", "Token", "apikey", "X-Hook-Secret-2", "X-Gitlab-Token"]
)
def test_a_name_of_ones_own_is_free(name: str) -> None:
    assert header_name_problem(name) is None


@pytest.mark.parametrize("name", ["_under_score", "X_Api_Key", "X.Key", "X Key", "", "é", "x" * 101])
def test_a_name_that_a_proxy_would_drop_is_refused(name: str) -> None:
    assert "letters, digits and hyphens" in (header_name_problem(name) or "")
