"""The SDK's own client. It is loaded by whoever asks: its models take longer to make than most files of tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2

from support.plain_http import WITHOUT_TLS
from support.program import Program
from support.waiting import PATIENCE

if TYPE_CHECKING:
    from mcp.client import Client


@asynccontextmanager
async def over_http(program: Program, key: str, mode: str = "auto") -> "AsyncIterator[Client]":
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {key}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, verify=WITHOUT_TLS, timeout=PATIENCE) as http,
        Client(streamable_http_client(f"{program.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client
