"""Two gateway processes on one database: each tick of many schedules is fetched once."""

import asyncio
from collections import Counter
from pathlib import Path

import msgspec
import psycopg

from postern.core.webhooks.settings import Resolved
from postern.core.webhooks.stored import StoredWebhook
from postern.identity import new_id, new_short_code
from postern.settings import Settings
from postern.usecases.shapes import validated
from postern.usecases.webhooks import webhooks
from postern.usecases.webhooks.requests import WebhookRequest
from postern.wiring.gateway import opened
from support.desk import ACTOR
from support.program import StartProgram
from support.server import Answer, Asked, serving
from support.waiting import wait_until

SCHEDULES = 300
"""Each process has twenty under way and looks for more while they run: they meet at every one of the claims."""


async def many(settings: Settings, source_url: str) -> None:
    async with opened(settings) as gateway:
        request = {
            "name": "pattern",
            "authentication": {"method": "none"},
            "schedule": {"url": source_url, "every": "1d"},
        }
        pattern: WebhookRequest = validated(WebhookRequest, request)
        made = await gateway.store.webhooks.get((await webhooks.create(gateway, ACTOR, pattern)).id)
        assert isinstance(made, StoredWebhook)
        assert made.settings.schedule is not None
        settings, schedule = made.settings, made.settings.schedule
        await webhooks.remove(gateway, ACTOR, made.id)

        def another(number: int) -> StoredWebhook:
            changed = msgspec.structs.replace(schedule, url=f"{source_url}/{number}")
            asked = msgspec.structs.replace(settings, name=str(number), schedule=changed)
            now = gateway.clock() - 3600  # so that the first tick has long been due
            return StoredWebhook(new_id("wh"), new_short_code(), True, False, asked, Resolved(), 1, now, now)

        await asyncio.gather(
            *(gateway.store.webhooks.create(another(number), {}) for number in range(SCHEDULES))
        )


def test_each_tick_of_many_schedules_is_fetched_by_one_of_two_processes(
    start_program: StartProgram, migrated_url: str, tmp_path: Path
) -> None:
    counted: Counter[str] = Counter()

    def answer(asked: Asked) -> Answer:
        counted[asked.path] += 1
        return 200, "", b"{}"

    with serving(answer) as url:
        all_are_fetched(start_program, migrated_url, tmp_path, url)
    assert counted == {f"/{number}": 1 for number in range(SCHEDULES)}
    with psycopg.connect(migrated_url) as connection:
        rows = connection.execute(
            "SELECT webhook_id, count(*) FROM invocations GROUP BY webhook_id"
        ).fetchall()
    assert Counter(count for _, count in rows) == {1: SCHEDULES}


def all_are_fetched(start_program: StartProgram, migrated_url: str, tmp_path: Path, source_url: str) -> None:
    common = {
        "POSTERN_DATABASE_URL": migrated_url,
        "POSTERN_SECRET_KEYS": "0123456789abcdef0123456789abcdef",
        "POSTERN_ENGINE": "none",
        "POSTERN_LOG": "off",
        "POSTERN_OUTBOUND_ALLOWED": "127.0.0.1",
    }
    asyncio.run(many(Settings({**common, "POSTERN_DATA_DIR": str(tmp_path / "making")}), source_url))
    for name in ("one", "two"):
        start_program(**common, POSTERN_DATA_DIR=str(tmp_path / name), ready=False)

    def fetched() -> int:
        with psycopg.connect(migrated_url) as connection:
            row = connection.execute("SELECT count(*) FROM schedules WHERE last_at IS NOT NULL").fetchone()
            return row[0] if row else 0

    wait_until(
        lambda: fetched() == SCHEDULES,
        120,
        what=lambda: f"every schedule to have run; {fetched()} have",
        every=0.5,
    )
