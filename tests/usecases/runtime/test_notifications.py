"""What another process announces wakes whoever waits for it here."""

from collections.abc import Callable

import pytest

from postern.usecases.runtime import notifications
from support.house import House

ANNOUNCED = ("configuration", "due", "answer:inv_1.1", "listeners", "handed:lsn_1", "listening", "deaf")
WOKEN = {
    "configuration": {"configuration"},
    "due": {"due"},
    "answer:inv_1.1": {"a caller"},
    "listeners": {"listeners"},
    "handed:lsn_1": {"a listener"},
    # Heard again: whatever was said meanwhile is looked up.
    "listening": {"configuration", "due", "a caller", "another caller", "listeners"},
    "deaf": set(),
}


async def hearing(house: House, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What the store calls with each word."""
    callbacks: list[Callable[[str], None]] = []

    async def listen(on_word: Callable[[str], None]) -> None:
        callbacks.append(on_word)

    monkeypatch.setattr(house.gateway.store, "listen", listen)
    await notifications.follow(house.gateway)
    return callbacks[0]


@pytest.mark.parametrize("word", ANNOUNCED)
async def test_a_word_wakes_whom_it_concerns(
    house: House, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    runtime = house.gateway.runtime
    on_word = await hearing(house, monkeypatch)
    runtime.due.clear()
    callers = runtime.waiters.waiting
    with (
        callers("inv_1.1") as caller,
        callers("inv_2.1") as another,
        runtime.listeners.waiting("lsn_1") as handed,
    ):
        events = {
            "configuration": runtime.directory._changed,
            "due": runtime.due,
            "a caller": caller,
            "another caller": another,
            "listeners": runtime.listeners.changed,
            "a listener": handed,
        }
        on_word(word)
        assert {name for name, event in events.items() if event.is_set()} == WOKEN[word]


async def test_who_hears_nothing_looks_more_often(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    waiters = house.gateway.runtime.waiters
    alone = waiters.look_every
    on_word = await hearing(house, monkeypatch)
    on_word("listening")
    assert waiters.look_every > alone
    on_word("deaf")
    assert waiters.look_every == alone
    on_word("a word of a later version")
