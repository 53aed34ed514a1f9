"""A tool: one operation of the API, or several between which the caller chooses. Its arguments follow from the
operations' parameters."""

import re
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field, create_model
from pydantic.alias_generators import to_camel

from postern.core.access.accounts import Actor, Level
from postern.core.documents import Document, Patch
from postern.core.problems import FieldError, Refused, invalid
from postern.core.signatures.scheme import TITLE as SCHEME
from postern.surfaces.mcp.shown import Shown
from postern.surfaces.rest.framework.document import followed
from postern.surfaces.rest.framework.operation import Arguments, Operation
from postern.surfaces.rest.table import operations
from postern.usecases.answers import Schema
from postern.usecases.history.filters import Id
from postern.usecases.runtime.gateway import Gateway, require
from postern.usecases.shapes import WHOLE, Shape, validated

OPERATIONS = {operation.name: operation for operation in operations()}

FewAtMost = Annotated[Annotated[int, Field(ge=1, le=50)], WHOLE]
Version = Annotated[
    Annotated[int, WHOLE] | None,
    Field(description="The version that was read: refused where it has changed meanwhile."),
]
Changes = Annotated[
    Patch,
    Field(
        description="In the shape of create_webhook, only what is to change; null removes a setting. "
        'For example {"fieldMapping": {"fieldTwo": "customer.email"}}. Secrets that are not named stay.'
    ),
]


class Action:
    """An operation as a model uses it."""

    def __init__(self, operation: str, *, destructive: bool = False, shown: Shown = Shown()) -> None:
        self.operation: Operation = OPERATIONS[operation]
        self.destructive = destructive or self.operation.method == "DELETE"
        """True if it removes something, or changes how callers are answered."""
        self.shown = shown

    @property
    def reads(self) -> bool:
        return self.operation.level == "read" and self.operation.method != "DELETE"

    @cached_property
    def request(self) -> type[Shape]:
        """The type of the arguments: the parts of the path, the query, the body and the version together. It is
        a subclass of the query's and the body's types, so it can be used in their place."""
        shapes = (self.operation.query, self.operation.body)
        parts = tuple(shape for shape in shapes if shape not in (None, Patch))
        added: Arguments = dict.fromkeys(self._in_path, (Id, ...))
        if self.operation.body == Patch:
            added["changes"] = (Changes, ...)
        if "seen_version" in self.operation.takes:
            added["version"] = (Version, None)
        if any("limit" in part.model_fields for part in parts):
            added["limit"] = (FewAtMost, 20)
        made: type[Shape] = create_model(self.operation.name, __base__=parts or Shape, **added)
        return made

    async def run(self, gateway: Gateway, actor: Actor, given: Document) -> Document:
        require(actor, self.operation.level or "read")
        arguments: Any = validated(self.request, given)
        looked_for = [*self._in_path, *(self.operation.query.model_fields if self.operation.query else ())]
        if nul := [to_camel(name) for name in looked_for if "\0" in str(getattr(arguments, name))]:
            raise Refused(
                "invalid_request", errors=[FieldError(field, "holds a NUL character") for field in nul]
            )
        known = {
            "gateway": gateway,
            "actor": actor,
            "query": arguments,
            "body": arguments.changes if self.operation.body == Patch else arguments,
            "seen_version": getattr(arguments, "version", None),
            **{name: getattr(arguments, name) for name in self._in_path},
        }
        answer = await self.operation.run(known)
        return {"done": True} if answer is None else self.shown.of(answer)

    @property
    def _in_path(self) -> list[str]:
        return re.findall(r"{(\w+)}", self.operation.path)


class Tool:
    """A reading tool takes its operation from ``what``, by default the first; a writing one from ``action``."""

    def __init__(self, name: str, title: str) -> None:
        self.name, self.title, self.description = name, title, ""
        self.actions: dict[str, Action] = {}

    def does(self, description: str, actions: Action | dict[str, Action]) -> "Tool":
        self.description = description
        self.actions = actions if isinstance(actions, dict) else {"": actions}
        return self

    @property
    def reads(self) -> bool:
        return all(action.reads for action in self.actions.values())

    @property
    def destructive(self) -> bool:
        return any(action.destructive for action in self.actions.values())

    @property
    def level(self) -> Level:
        """The level from which the tool is offered. Each action checks its own level all the same."""
        return "read" if self.reads else "write"

    async def run(self, gateway: Gateway, actor: Actor, given: Document) -> Document:
        if "" in self.actions:
            return await self.actions[""].run(gateway, actor, given)
        chosen = given.get(self._choice, next(iter(self.actions)) if self.reads else None)
        if not isinstance(chosen, str) or chosen not in self.actions:
            raise invalid(self._choice, f"choose one of: {', '.join(self.actions)}")
        rest = {name: value for name, value in given.items() if name != self._choice}
        taken = {field.alias for field in self.actions[chosen].request.model_fields.values()}
        if others := [name for name in rest if name in self.schema["properties"] and name not in taken]:
            detail = f"does not go with {chosen}"
            raise Refused("invalid_request", errors=[FieldError(name, detail) for name in others])
        return await self.actions[chosen].run(gateway, actor, rest)

    @property
    def _choice(self) -> str:
        return "what" if self.reads else "action"

    @cached_property
    def schema(self) -> Schema:
        """The schema of all actions together. Words say what one action needs and another does not."""
        if "" in self.actions:
            return short_schema(self.actions[""].request)
        each = {name: short_schema(action.request) for name, action in self.actions.items()}
        required = set.intersection(*(set(shape.get("required", ())) for shape in each.values()))
        needs = [
            f"{name} needs {', '.join(own)}"
            for name, shape in each.items()
            if (own := [field for field in shape.get("required", ()) if field not in required])
        ]
        choice: Schema = {"type": "string", "enum": list(each)}
        if self.reads:
            choice["default"] = next(iter(each))
        if needs:
            choice["description"] = "; ".join(needs)
        properties: Schema = {self._choice: choice}
        for shape in each.values():
            for name, field in shape["properties"].items():
                first = properties.setdefault(name, field)
                if first.get("default") != field.get("default"):
                    properties[name] = {key: value for key, value in first.items() if key != "default"}
        return {
            "type": "object",
            "properties": properties,
            "required": [
                argument
                for argument in properties
                if argument in required or (argument == self._choice and not self.reads)
            ],
            "additionalProperties": False,
        }


def short_schema(request: type[Shape]) -> Schema:
    """Returns a schema with few words, because a model reads them all: without titles, null, empty defaults and
    references."""
    whole = request.model_json_schema(by_alias=True)
    short: Schema = _short(whole, whole.pop("$defs", {}))
    return short | {"additionalProperties": False}


def _short(schema: Any, shapes: Schema) -> Any:
    if isinstance(schema, list):
        return [_short(member, shapes) for member in schema]
    if not isinstance(schema, dict):
        return schema
    schema = followed(schema, shapes)
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if any(choice.get("title") == SCHEME for choice in choices):
        return {"type": "object", "description": "Its members: show_senders, scheme."}
    if len(choices) == 1:
        schema = {**choices[0], **{name: member for name, member in schema.items() if name != "anyOf"}}
        return _short(schema, shapes)
    short = {name: _short(member, shapes) for name, member in schema.items() if name not in _LEFT_OUT}
    if choices:
        short["anyOf"] = _short(choices, shapes)
    if "properties" in schema:
        short["properties"] = {name: _short(member, shapes) for name, member in schema["properties"].items()}
    if schema.get("default") not in (None, "") and not isinstance(schema["default"], dict | list):
        short["default"] = schema["default"]
    if "description" in schema:
        short["description"] = " ".join(schema["description"].split())
    return short


_LEFT_OUT = ("title", "default", "discriminator", "anyOf", "properties", "additionalProperties")
