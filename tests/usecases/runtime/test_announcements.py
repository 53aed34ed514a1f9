"""What another process announces wakes whoever waits for it here."""

from support.house import House

WOKEN = {
    "configuration": {"configuration"},
    "due": {"due"},
    "answer:inv_1.1": {"a caller"},
    "handed:lsn_1": {"a listener"},
    # Heard again: whatever was said meanwhile is looked up.
    "listening": {"configuration", "due", "a caller", "another caller"},
    "deaf": set(),
}


async def test_a_word_wakes_whom_it_concerns(house: House) -> None:
    runtime = house.gateway.runtime
    callers = runtime.waiters.waiting
    for word, woken in WOKEN.items():
        with (
            callers("inv_1.1") as caller,
            callers("inv_2.1") as another,
            runtime.listeners.waiting("lsn_1") as handed,
        ):
            events = {
                "configuration": runtime.directory._changed,
                "due": runtime.engine.due,
                "a caller": caller,
                "another caller": another,
                "a listener": handed,
            }
            for event in events.values():
                event.clear()
            runtime.hear(word)
            assert {name for name, event in events.items() if event.is_set()} == woken, word


async def test_who_hears_nothing_looks_more_often(house: House) -> None:
    runtime, waiters = house.gateway.runtime, house.gateway.runtime.waiters
    alone = waiters.look_every
    runtime.hear("listening")
    assert waiters.look_every > alone
    runtime.hear("deaf")
    assert waiters.look_every == alone
    runtime.hear("a word of a later version")
