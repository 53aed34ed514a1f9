"""How long what is kept is kept, to the second."""

import pytest

from postern.core.operations.retention import DAY, YOUNGEST, OwnRetention, RetentionPolicy

NOW = 1_800_000_000.0
DAYS_30 = 30 * 24 * 60 * 60


@pytest.mark.parametrize(
    ("own", "history", "bodies"),
    [
        (OwnRetention(), DAYS_30, None),
        (OwnRetention(history_retention_days=1), DAY, None),
        (OwnRetention(body_retention_days=7), DAYS_30, 7 * DAY),
        (OwnRetention(body_retention_days=0), DAYS_30, YOUNGEST),
        (OwnRetention(body_retention_days=29), DAYS_30, 29 * DAY),
        (OwnRetention(body_retention_days=30), DAYS_30, None),
        (OwnRetention(history_retention_days=3, body_retention_days=3), 3 * DAY, None),
        (OwnRetention(history_retention_days=3, body_retention_days=2), 3 * DAY, 2 * DAY),
    ],
)
def test_a_webhooks_own_rule_comes_before_the_gateways(
    own: OwnRetention, history: float, bodies: float | None
) -> None:
    policy = RetentionPolicy()
    assert NOW - policy.history_before(own, NOW) == history
    before = policy.bodies_before(own, NOW)
    assert (None if before is None else NOW - before) == bodies


def test_the_gateways_rule_holds_where_a_webhook_has_none() -> None:
    policy = RetentionPolicy(history_days=2, body_days=1, audit_days=10)
    assert NOW - policy.history_before(OwnRetention(), NOW) == 2 * DAY
    bodies = policy.bodies_before(OwnRetention(), NOW)
    assert bodies is not None and NOW - bodies == DAY
    assert NOW - policy.records_before(NOW) == 10 * DAY
    assert NOW - RetentionPolicy(history_days=0).history_before(OwnRetention(), NOW) == YOUNGEST


def test_where_a_rule_cannot_be_read_everything_stays() -> None:
    policy = RetentionPolicy(history_days=1, body_days=0)
    assert (policy.history_before(None, NOW), policy.bodies_before(None, NOW)) == (0.0, None)
