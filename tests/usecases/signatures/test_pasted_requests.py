"""A request that was pasted into the signature tester, as a call."""

import pytest

from postern.core.problems import Refused
from postern.usecases.signatures import signatures
from support.house import OWNER, House

pytestmark = pytest.mark.anyio


async def proposed(house: House, **call: object) -> list[str]:
    tested = signatures.TestedCall.model_validate(
        {"headers": [("X-Shopify-Hmac-Sha256", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")], **call}
    )
    return [one.name for one in await signatures.propose(house.gateway, OWNER, call=tested)]


async def test_a_request_need_not_have_a_body(house: House) -> None:
    assert "shopify" in await proposed(house)
    assert "shopify" in await proposed(house, body="{}")


async def test_a_header_that_http_cannot_carry_is_refused(house: House) -> None:
    with pytest.raises(Refused) as refused:
        await proposed(house, headers=[("X-Shopify-Hmac-Sha256", "€")])
    assert [error.field for error in refused.value.errors] == ["call"]
