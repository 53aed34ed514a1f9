"""Does what the conformance suite asks of a workflow, as a DBOS app, and keeps what it was run with in a file."""

import importlib.util
import json
import os
import time
from pathlib import Path
from typing import Any

from dbos import DBOS

spec = importlib.util.spec_from_file_location("dbos_app", os.environ["DBOS_EXAMPLE"])
assert spec is not None and spec.loader is not None
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)

RAN = Path(os.environ["DBOS_RAN"])


@DBOS.step()
def keep(trigger: dict[str, Any]) -> None:
    with RAN.open("a") as file:
        file.write(json.dumps(trigger) + "\n")


@DBOS.workflow(name="Echo")
def echo(trigger: dict[str, Any]) -> None:
    keep(trigger)
    if trigger["fieldOne"] == "fail":
        raise ValueError("as asked")
    while trigger["fieldOne"] == "wait" and not RAN.with_name("go").exists():
        time.sleep(0.02)
    example.answer_caller(trigger, {"echo": trigger["fieldOne"]})


example.serve()
