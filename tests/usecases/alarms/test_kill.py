"""A gateway that is killed while it tells an incident: the next one tells it again, under the same key."""

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

from support.program import StartProgram
from support.server import Answer, Asked, serving
from support.stored import open_incident
from support.waiting import PATIENCE, wait_until
from support.webhooks import make_webhook

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_what_a_killed_gateway_was_telling_is_told_again_under_the_same_key(
    start_program: StartProgram, tmp_path: Path
) -> None:
    heard: list[Asked] = []
    answers = threading.Event()

    def answer(asked: Asked) -> Answer:
        heard.append(asked)
        answers.wait(PATIENCE)
        return 200, "", b""

    data_dir = tmp_path / "data"
    webhook = make_webhook(data_dir)
    with serving(answer) as url:
        settings = {
            "POSTERN_DATA_DIR": str(data_dir),
            "POSTERN_OUTBOUND_ALLOWED": "127.0.0.1",
            "POSTERN_TELL": f"webhook+{url}/#{KEY}",
        }
        killed = start_program(**settings)
        made = open_incident(data_dir, webhook.id)
        wait_until(lambda: heard, what="the first message")
        killed.kill()
        answers.set()
        with closing(sqlite3.connect(data_dir / "postern.db", timeout=PATIENCE)) as database, database:
            lease, told = database.execute("SELECT tell_at, told FROM incidents").fetchone()
            assert lease > time.time() * 1000 and told is None
            database.execute("UPDATE incidents SET tell_at = 1")  # the lease is over
        start_program(**settings)
        wait_until(lambda: len(heard) > 1, what="the second message")
        assert [one.headers["webhook-id"] for one in heard] == [f"{made}.opened"] * 2
