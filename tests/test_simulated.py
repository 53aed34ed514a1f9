"""Random calls, people, crashes, lost commits and wrong clocks: then every surface says what the ledger says. `make simulate`
tries more seeds."""

from pathlib import Path

import pytest

from support.simulated import what_a_seed_finds


@pytest.mark.parametrize("seed", [*range(1, 7), 1056, 1063])  # the last two have found something
async def test_a_simulated_world_keeps_every_promise(seed: int, tmp_path: Path) -> None:
    assert await what_a_seed_finds(seed, tmp_path) == []


@pytest.mark.parametrize("seed", [1, 2])
async def test_two_stores_on_one_postgres_keep_them_too(seed: int, tmp_path: Path, started_url: str) -> None:
    assert await what_a_seed_finds(seed, tmp_path, started_url, stores=2) == []
