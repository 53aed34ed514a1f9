"""A store in trouble: calls are rejected while it lasts and accepted again afterwards, and nothing
acknowledged is lost."""

import resource
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import text

from postern.stores.store import Store
from support.forks import impatient
from support.program import StartProgram
from support.reply import HttpReply
from support.server import Answer, Asked, serving
from support.waiting import PATIENCE, wait_until
from support.webhooks import TOKEN, make_webhook, stories
from support.wire import exchange

CALL = [("X-Api-Key", TOKEN), ("Content-Type", "application/json")]


def tell_writer(store: Store, pragma: str) -> None:
    """Changes a setting of the connection that the writer commits on. Nothing may be waiting."""
    store.writer._connected().connection.driver_connection.execute(f"PRAGMA {pragma}")  # type: ignore[union-attr]


@contextmanager
def no_more_room(store: Store) -> Iterator[None]:
    """The database file may not grow by a page."""

    now = store.database.read_now(lambda connection: connection.scalar(text("PRAGMA page_count")))
    tell_writer(store, f"max_page_count = {now}")
    yield
    tell_writer(store, f"max_page_count = {1 << 30}")


def test_the_program_on_a_full_disk_says_503_and_recovers(
    tmp_path: Path, start_program: StartProgram
) -> None:
    webhook = make_webhook(tmp_path / "data")
    impatience = impatient(**{"postern.stores.condition.CALLS_FAIL_FOR": 2.0})
    program = start_program(POSTERN_ENGINE="none", POSTERN_LOG="off", **impatience)

    def call() -> HttpReply:
        return exchange(program.port, "POST", webhook.path, CALL, b'{"filler": "' + b"x" * 30_000 + b'"}')

    def may_grow_to(size: int) -> None:
        resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    acknowledged = [call().json["invocationId"]]
    may_grow_to(400_000)
    rejected = None
    for _ in range(40):
        answer = call()
        if answer.status != 200:
            rejected = answer
            break
        acknowledged.append(answer.json["invocationId"])
    assert rejected is not None
    assert (rejected.status, rejected.code) == (503, "temporarily_unavailable")
    assert int(rejected.headers["retry-after"]) >= 1
    not_ready = exchange(program.port, "GET", "/readyz")
    assert (not_ready.status, not_ready.json["store"]["ok"]) == (503, False)
    may_grow_to(resource.RLIM_INFINITY)
    wait_until(program.is_ready, what="/readyz to say that calls are stored again, though none came")
    answer = wait_until(lambda: (found := call()).status == 200 and found, what="calls to be accepted again")
    acknowledged.append(answer.json["invocationId"])
    assert {story["id"] for story in stories(tmp_path / "data", webhook)} == set(acknowledged)
    with sqlite3.connect(program.data_dir / "postern.db") as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


def test_what_a_target_takes_while_the_disk_is_full_is_sent_once_and_the_others_when_there_is_room(
    tmp_path: Path, start_program: StartProgram
) -> None:
    sent: Counter[str] = Counter()
    is_full, acknowledged = threading.Event(), []

    def answer(asked: Asked) -> Answer:
        sent[asked.headers["Idempotency-Key"].rpartition(".")[0]] += 1
        is_full.wait(PATIENCE)
        return 200, "text/plain", b""

    with serving(answer) as url:
        target = {"url": url, "forward": "original"}
        webhook = make_webhook(tmp_path / "data", target=target)
        # Its lease runs out while nothing can be written.
        impatience = impatient(**{"postern.usecases.deliveries.dispatch.LEASE": 1.0})
        near = {"POSTERN_ENGINE": "none", "POSTERN_OUTBOUND_ALLOWED": "127.0.0.1"}
        program = start_program(**near, **impatience)

        def call(filler: int = 0) -> bool:
            answer = exchange(program.port, "POST", webhook.path, CALL, b'{"n":"%s"}' % (b"x" * filler))
            acknowledged.extend([answer.json["invocationId"]] if answer.status == 200 else [])
            return answer.status == 200

        assert call()
        wait_until(lambda: sent, what="the target to have the first")
        assert all(call(filler) for filler in (0, 0, 600_000))
        resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        wait_until(lambda: not program.is_ready(), what="a loop that cannot write")
        is_full.set()
        wait_until(lambda: program.output().count("a start could not be recorded yet") == 1)
        assert not call() and sent == {acknowledged[0]: 1}
        resource.prlimit(
            program.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        )
        wait_until(lambda: {one["status"] for one in stories(program.data_dir, webhook)} == {"started"})
    assert sent == dict.fromkeys(acknowledged, 1)
