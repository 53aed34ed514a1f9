"""Engines are made from the environment."""

import pytest

from postern.engines.dbos import DbosEngine
from postern.engines.http import HttpEngine
from postern.engines.restate import RestateEngine
from postern.engines.shopify_flow import ShopifyFlowEngine
from postern.engines.temporal import TemporalEngine
from postern.settings import SettingError, Settings
from postern.wiring.engines import make_engine


def settings(**given: str) -> Settings:
    return Settings({f"POSTERN_{name.upper()}": value for name, value in given.items()})


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (
            {
                "engine": "http",
                "http_url": "http://n8n:5678/webhook/postern",
                "http_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            },
            HttpEngine,
        ),
        ({"engine": "temporal", "temporal_targets": "Webhook Trigger, Refund@refunds#wh_1"}, TemporalEngine),
        (
            {"engine": "shopify-flow", "shopify_shop": "a.myshopify.com", "shopify_access_token": "shpat_1"},
            ShopifyFlowEngine,
        ),
        ({"engine": "restate", "restate_url": "http://restate:8080"}, RestateEngine),
        ({"engine": "dbos", "dbos_database_url": "postgresql://dbos@db/app"}, DbosEngine),
        ({"engine": "none"}, type(None)),
    ],
)
async def test_an_engine_is_made_from_its_settings(given: dict[str, str], kind: type) -> None:
    engine = make_engine(settings(**given))
    assert isinstance(engine, kind)
    if engine is not None:
        await engine.close()


@pytest.mark.parametrize(
    "given",
    [
        {"engine": "http"},
        {"engine": "restate"},
        {"engine": "dbos"},
        {"engine": "dbos", "dbos_database_url": "sqlite:///app.db"},
        {"engine": "restate", "restate_url": "http://r:8080", "restate_targets": "Webhook Trigger"},
        {"engine": "restate", "restate_url": "http://r:8080", "restate_targets": "A/run, A/run#wh_1"},
        {"engine": "http", "http_url": "http://user:pw@n8n/"},
        {"engine": "http", "http_url": "http://n8n/", "http_secret": "nonsense!"},
        {"engine": "http", "http_url": "http://n8n/", "http_headers": "Authorization: x"},
        {"engine": "http", "http_url": "http://n8n/", "http_allowed_ranges": "here"},
        {"engine": "temporal", "temporal_targets": "A@q, A@r"},
        {"engine": "shopify-flow", "shopify_shop": "shop.example", "shopify_access_token": "shpat_1"},
        {"engine": "shopify-flow"},
    ],
)
def test_settings_that_cannot_work_are_refused_at_the_start(given: dict[str, str]) -> None:
    with pytest.raises(SettingError, match="POSTERN_"):
        make_engine(settings(**given))
