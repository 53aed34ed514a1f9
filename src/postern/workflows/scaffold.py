"""Write the beginning of a workflow from a recorded event, its fields typed as they really came."""

import keyword
import re
from pathlib import Path
from typing import Any

from postern.workflows.language import WORKFLOW_NAME

DEEPEST = 8
LONGEST_TITLE = 60
MOST_CLASSES = 200
# Python reads other letters as if they were these (NFKC), and a name with two underscores as another one.
_FIELD = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*")


def skeleton(name: str, sample: dict[str, Any], webhook_id: str) -> str:
    """Python source: the event as a TypedDict, and a workflow with its Webhook ID condition filled in."""
    function = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower() or "my_workflow"
    if function[0].isdigit() or keyword.iskeyword(function):
        function = f"on_{function}"
    title = name if WORKFLOW_NAME.fullmatch(name) else function
    classes: list[str] = []
    event = _typed("Event", sample, classes)
    shown = next(
        (field for field in ("fieldOne", "fieldTwo", "fieldThree", "fieldFour") if sample.get(field)),
        "webhookId",
    )
    typing = ["Any"] if any(re.search(r"\bAny\b", text) for text in classes) else []
    declared = _quoted(webhook_id) + (f", name={_quoted(title)}" if title != function else "")
    definitions = "\n\n\n".join(classes)
    return f'''"""{title}: say here what it does; the console shows the text below the function's first line."""

from typing import {", ".join([*typing, "TypedDict"])}

from postern.workflows import respond, workflow


{definitions}


@workflow({declared})
def {function}(event: {event}) -> None:
    """What this workflow is for."""
    print("called with", event["{shown}"])
    respond({{"ok": True}})
'''


def file_name(name: str) -> str:
    return f"{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_') or 'workflow'}.py"


def keep(folder: Path, name: str, source: str) -> Path:
    """As a new file, never over one that is there: raises FileExistsError."""
    file = folder / file_name(name)
    folder.mkdir(parents=True, exist_ok=True)
    with file.open("x") as opened:
        opened.write(source)
    return file


def _typed(title: str, value: Any, classes: list[str], depth: int = 0) -> str:
    """The value's type in words; an object becomes a class of its own, added before whoever mentions it.
    Strangers send the values: what nests deeper than anybody reads is not looked into."""
    if depth > DEEPEST:
        return "Any"
    match value:
        case bool() | int() | float() | str():
            return type(value).__name__
        case None:
            return "Any"
        case list():
            kinds = {_typed(title, item, [], depth + 1) for item in value}
            if len(kinds) != 1:
                return "list[Any]"
            return f"list[{_typed(title, value[0], classes, depth + 1)}]"
        case dict() if value and len(classes) < MOST_CLASSES:
            return _class(title, value, classes, depth + 1)
        case _:
            return "dict[str, Any]"


def _class(title: str, value: dict[str, Any], classes: list[str], depth: int) -> str:
    fields = {key: _typed(_title(key, title), inner, classes, depth) for key, inner in value.items()}
    taken = {text.removeprefix("class ").partition("(")[0].partition(" ")[0] for text in classes}
    while title in taken:
        title += "_"
    if all(_FIELD.fullmatch(key) and not keyword.iskeyword(key) for key in fields):
        body = "\n".join(f"    {key}: {kind}" for key, kind in fields.items())
        classes.append(f"class {title}(TypedDict):\n{body}")
    else:
        body = ", ".join(f"{_quoted(key)}: {kind}" for key, kind in fields.items())
        classes.append(f"{title} = TypedDict({_quoted(title)}, {{{body}}})")
    return title


def _title(key: str, parent: str) -> str:
    parts = re.split(r"[\W_]+", key, flags=re.ASCII)
    words = "".join(part[:1].upper() + part[1:] for part in parts)[:LONGEST_TITLE]
    free = words[:1].isalpha() and not keyword.iskeyword(words) and words not in ("Any", "TypedDict")
    return words if free else f"{parent}{words}"[-LONGEST_TITLE:]


def _quoted(text: str) -> str:
    """Escaped beyond ASCII: some characters change the order in which the rest is read."""
    return '"' + re.sub(r"[^ !#-\[\]-~]", _escaped, text) + '"'


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    return f"\\{char}" if char in '"\\' else char.encode("unicode_escape").decode()
