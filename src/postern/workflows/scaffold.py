"""Write the beginning of a workflow from a recorded event, its fields typed as they really came."""

import json
import keyword
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from postern.workflows.event import FIELD_NAMES
from postern.workflows.language import WORKFLOW_NAME
from postern.workflows.shapes import Classes, JsonShape, quoted, shape_of
from postern.workflows.testing import FORMAT, VERSION


def skeleton(name: str, sample: dict[str, Any], webhook_id: str) -> str:
    """Python source: the event as a TypedDict, and a workflow with its Webhook ID condition filled in."""
    function = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower() or "my_workflow"
    if function[0].isdigit() or keyword.iskeyword(function):
        function = f"on_{function}"
    title = name if WORKFLOW_NAME.fullmatch(name) else function
    classes = Classes()
    event = classes.type_of(shape_of(sample), "Event")
    shown = next((field for field in FIELD_NAMES if sample.get(field)), "webhookId")
    declared = quoted(webhook_id) + (f", name={quoted(title)}" if title != function else "")
    definitions = "\n\n\n".join(classes.definitions)
    return f'''"""{title}: say here what it does; the console shows the text below the function's first line."""

from typing import {", ".join(classes.imported)}

from postern.workflows import respond, step, workflow


{definitions}


@step(retries=3)
def {function}_step(value: str) -> None:
    """Calls to the outside, a mail or an ERP, go into a step: it is tried again when it fails, and not done again after a crash."""
    print("called with", value)


@workflow({declared})
def {function}(event: {event}) -> None:
    """Say here what this workflow is for."""
    {function}_step(event["{shown}"])
    respond({{"ok": True}})
'''


def file_name(name: str) -> str:
    return f"{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_') or 'workflow'}.py"


def keep_test(workflow: Path, event: Mapping[str, Any]) -> list[Path]:
    """Writes the event of a workflow that `skeleton` has written as a fixture, and a test that runs it on that.
    Neither replaces a file: raises FileExistsError."""
    usual = workflow.parent / "tests"
    folder = usual if usual.is_dir() else workflow.parent.parent / "tests"
    function = re.findall(r"^def (\w+)\(event", workflow.read_text(), re.MULTILINE)[-1]
    document = {FORMAT: VERSION, "name": "", "webhook": "", "receivedAt": None, "headers": [], "event": event}
    texts = {
        folder / "events" / f"{workflow.stem}.json": json.dumps(document, indent=2) + "\n",
        folder / f"test_{workflow.stem}.py": _TEST.format(module=workflow.stem, function=function),
    }
    for file in texts:
        if file.exists():
            raise FileExistsError(17, "exists", str(file))
    (folder / "events").mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        _make(file, text)
    return list(texts)


_TEST = '''"""{function}, on the event that it was written from: `postern workflows test` runs this."""

from {module} import {function}
from postern.workflows.testing import run


def test_{function}_answers(load_event):
    went = run({function}, load_event("{module}"), steps={{"{function}_step": None}})
    assert went.answer.body == {{"ok": True}}
'''

VARIABLES = ("webhookId", *FIELD_NAMES, "invocationId")
WRITTEN = "# Written by `postern workflows types`"
"""The beginning of what may be written anew."""


def module_of_types(webhook_id: str, payload: JsonShape, calls: int) -> str:
    """Python source: ``Event`` and ``Payload`` of a webhook. The same shapes give the same text."""
    classes = Classes(in_order_of_names=True, reserved=("Event", "Payload"))
    kind = "Payload" if payload.members else "dict[str, Any]"
    if payload.members:
        classes.define("Payload", classes.fields_of(payload, "Payload"), chosen=True)
    classes.define("Event", {**dict.fromkeys(VARIABLES, "str"), "payload": kind}, chosen=True)
    definitions = "\n\n\n".join(classes.definitions)
    read = "1 recorded call" if calls == 1 else f"{calls} recorded calls"
    return f"""{WRITTEN} from {read} of {webhook_id}. Write it again instead of changing it.

from typing import {", ".join(classes.imported)}


{definitions}
"""


def keep(folder: Path, name: str, source: str) -> Path:
    """As a new file, never over one that is there: raises FileExistsError."""
    file = folder / file_name(name)
    folder.mkdir(0o700, parents=True, exist_ok=True)
    _make(file, source)
    return file


def _make(file: Path, text: str) -> None:
    """Whole or not at all: half a workflow is a file with an error, with which no workflow runs."""
    try:
        with file.open("x") as opened:
            opened.write(text)
    except FileExistsError:
        raise
    except BaseException:
        file.unlink(missing_ok=True)
        raise
