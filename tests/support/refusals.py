"""What was refused, and why."""

from collections.abc import Awaitable

import pytest

from postern.core.problems import Refused


async def refused(asked: Awaitable[object]) -> Refused:
    with pytest.raises(Refused) as caught:
        await asked
    return caught.value


def fields_of(refusal: Refused) -> dict[str, str]:
    """Those that are wrong, each with the sentence that says why."""
    assert refusal.code == "invalid_request"
    return {error.field: error.message for error in refusal.errors}


async def fields_refused(asked: Awaitable[object]) -> dict[str, str]:
    return fields_of(await refused(asked))
