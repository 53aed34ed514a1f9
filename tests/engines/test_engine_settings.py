"""From the environment to an engine, and through a whole program: a synchronous call answered by an HTTP
engine."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from engines.conformance import until
from postern.engines.dbos import DbosEngine
from postern.engines.http import HttpEngine
from postern.engines.restate import RestateEngine
from postern.engines.shopify_flow import ShopifyFlowEngine
from postern.engines.temporal import TemporalEngine
from postern.settings import SettingError, Settings
from postern.wiring.engines import make_engine
from stand_in import Received, Reply, stand_in
from support.plain_http import WITHOUT_TLS
from support.program import Program, StartProgram, run_postern

pytestmark = pytest.mark.anyio


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


async def call_synchronously(program: Program, field_one: str) -> httpx2.Response:
    folder = program.data_dir.parent
    given = ["fieldMapping.fieldOne=orderNumber", "synchronousResponse.enabled=true"]
    # The program's port is in every webhook's URL, so the command is told it as well.
    made = await asyncio.to_thread(
        run_postern,
        folder,
        "webhooks",
        "create",
        "Orders",
        *given,
        "--auth",
        "none",
        "--json",
        POSTERN_PORT=str(program.port),
    )
    assert made.returncode == 0, made.stderr
    async with httpx2.AsyncClient(trust_env=False, verify=WITHOUT_TLS, timeout=30) as client:

        async def known() -> httpx2.Response | None:
            reply = await client.post(json.loads(made.stdout)["url"], json={"orderNumber": field_one})
            return None if reply.status_code == 404 else reply

        reply: httpx2.Response = await until(known)
        return reply


async def test_a_caller_hears_what_the_engine_answers_inline(start_program: StartProgram) -> None:
    def workflow(request: Received) -> Reply:
        return Reply(
            200,
            {"Content-Type": "application/json", "X-Postern-Status": "203"},
            json.dumps({"echo": request.json["fieldOne"]}).encode(),
        )

    async with stand_in(workflow) as engine:
        program = start_program(POSTERN_ENGINE="http", POSTERN_HTTP_URL=engine.url, POSTERN_HTTP_INLINE="on")
        reply = await call_synchronously(program, "1001")
        program.stop()
    assert (reply.status_code, reply.json()) == (203, {"echo": "1001"})
    assert len(engine.received) == 1


async def test_a_caller_hears_what_the_workflow_posts_later(start_program: StartProgram) -> None:
    answers: set[asyncio.Task[Any]] = set()

    async def respond(slot: dict[str, str]) -> int:
        async with httpx2.AsyncClient(trust_env=False, verify=WITHOUT_TLS) as client:
            document = {"status": 200, "headers": {}, "body": {"orders": []}}
            return (
                await client.post(
                    slot["url"], json=document, headers={"Authorization": f"Bearer {slot['token']}"}
                )
            ).status_code

    def workflow(request: Received) -> Reply:
        answers.add(asyncio.create_task(respond(request.json["response"])))
        return Reply(202)

    async with stand_in(workflow) as engine:
        program = start_program(POSTERN_ENGINE="http", POSTERN_HTTP_URL=engine.url)
        reply = await call_synchronously(program, "1001")
        assert [await answer for answer in answers] == [200]
        program.stop()
    assert (reply.status_code, reply.json()) == (200, {"orders": []})
