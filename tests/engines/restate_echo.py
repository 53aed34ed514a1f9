"""Does what the conformance suite asks of a workflow, as a Restate service, and keeps what it was run with in a
file."""

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import restate

spec = importlib.util.spec_from_file_location("restate_service", os.environ["RESTATE_EXAMPLE"])
assert spec is not None and spec.loader is not None
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)

echo = restate.Service("Echo")
RAN = Path(os.environ["RESTATE_RAN"])


def keep(trigger: dict[str, Any]) -> None:
    with RAN.open("a") as file:
        file.write(json.dumps(trigger) + "\n")


@echo.handler("run")
async def run(ctx: restate.Context, trigger: dict[str, Any]) -> str:
    await ctx.run_typed("keep", keep, trigger=trigger)
    if trigger["fieldOne"] == "fail":
        raise restate.TerminalError("as asked")
    if trigger["fieldOne"] == "large":
        return "x" * 1_000_000
    await example.answer_caller(ctx, trigger, {"echo": trigger["fieldOne"]})
    return "done"


@echo.handler("second")
async def second(ctx: restate.Context, trigger: dict[str, Any]) -> None:
    pass


app = restate.app([echo, example.webhook_trigger])
