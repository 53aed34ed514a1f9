"""A webhook's configuration as every surface writes it: one schema, validated here, stored as one document.

Secrets come in through it and never go out: ``parts`` divides a valid request into the document and the
secrets.
"""

import re
from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_args

import msgspec
from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import ErrorDetails

from postern.core.address import Allowlist, InvalidRanges
from postern.core.calls.cors import origin_problem
from postern.core.calls.paths import path_problem
from postern.core.documents import Document
from postern.core.names import header_name_problem, parameter_name_problem, username_problem
from postern.core.problems import FieldError, Refused
from postern.core.signatures.credential import Placement
from postern.core.visible import on_one_line
from postern.core.webhooks.grouping import MOST_TAGS, distinct, folder_of, tag_problem
from postern.core.webhooks.settings import PAYLOAD_LIMIT, WebhookSettings, place_of_key
from postern.core.webhooks.webhook import LARGEST_PAYLOAD_LIMIT
from postern.usecases.shapes import WHOLE, FieldRefused, Shape, checked
from postern.usecases.webhooks.schedule_setting import ScheduleSetting, url_problem

LONGEST_TOKEN = 1024


class Generate(Shape):
    """Have a strong random one made; it is then read in the console."""

    generate: Literal[True]


def _secret_length(value: object) -> object:
    if isinstance(value, str) and not 1 <= len(value.encode("utf-8", "surrogatepass")) <= LONGEST_TOKEN:
        raise ValueError(f"a secret has 1 to {LONGEST_TOKEN} bytes")
    return value


Secret = Annotated[str, BeforeValidator(_secret_length)]


class NoAuthentication(Shape):
    """Anybody who knows the URL may call. For testing only."""

    method: Literal["none"]


class TokenAuthentication(Shape):
    """A fixed secret that the caller sends with every call."""

    method: Literal["token"]
    placement: Placement = "header"
    header_name: str = "X-Api-Key"
    username: str | None = None
    parameter_name: str = "token"
    token: Secret | Generate | None = Field(default=None, repr=False)
    second_token: Secret | Generate | None = Field(default=None, repr=False)

    @field_validator("header_name")
    @classmethod
    def _header_name(cls, name: str) -> str:
        return checked(name, header_name_problem(name))

    @field_validator("parameter_name")
    @classmethod
    def _parameter_name(cls, name: str) -> str:
        return checked(name, parameter_name_problem(name))

    @field_validator("username")
    @classmethod
    def _username(cls, name: str | None) -> str | None:
        return name if name is None else checked(name, username_problem(name))

    @model_validator(mode="after")
    def _basic_needs_a_username(self) -> "TokenAuthentication":
        if self.placement == "basic" and not self.username:
            raise FieldRefused("username", "the Basic placement needs a username; the token is the password")
        if self.placement in ("header", "bearer"):
            for secret in (self.token, self.second_token):
                if isinstance(secret, str) and (
                    secret != secret.strip() or not secret.isascii() or not secret.isprintable()
                ):
                    raise FieldRefused(
                        "token",
                        "a token that travels in a header is printable ASCII without spaces at its ends",
                    )
        return self


class SignatureAuthentication(Shape):
    """The caller signs each call with a shared secret, in its own scheme."""

    method: Literal["hmac"]
    provider: str
    secret: Secret | Generate | None = Field(default=None, repr=False)
    second_secret: Secret | Generate | None = Field(default=None, repr=False)
    verify_token: Secret | Generate | None = Field(default=None, repr=False)
    public_url: str | None = None
    tolerance_seconds: Annotated[int, Field(ge=0, le=30 * 86400), WHOLE] | None = None
    scheme: Document | None = None
    require_timestamp_and_digest: bool = False
    preset_version: Annotated[int, WHOLE] | None = None

    @field_validator("public_url")
    @classmethod
    def _public_url(cls, url: str | None) -> str | None:
        if url is not None and url_problem(url):
            raise ValueError("write the whole URL that the sender was given, beginning with https://")
        return url


Authentication = Annotated[
    NoAuthentication | TokenAuthentication | SignatureAuthentication, Field(discriminator="method")
]


class FieldMapping(Shape):
    """Up to four values taken out of the payload, each by its path, like customer.email or items[0].sku."""

    field_one: str | None = None
    field_two: str | None = None
    field_three: str | None = None
    field_four: str | None = None

    @field_validator("*")
    @classmethod
    def _path(cls, path: str | None) -> str | None:
        return checked(path, path_problem(path)) if path else None


class SynchronousResponse(Shape):
    """Whether the caller waits for the workflow's answer, and how long."""

    enabled: bool = False
    timeout_seconds: Annotated[float, Field(ge=1, le=60)] | None = None


class DuplicateProtection(Shape):
    """Whether a retried delivery starts the workflow only once. ``key`` is ``header:Name`` or a path in the
    body."""

    enabled: bool = False
    key: str | None = None
    window_seconds: Annotated[int, Field(ge=60, le=7 * 86400), WHOLE] = 86400

    @field_validator("key")
    @classmethod
    def _key(cls, key: str | None) -> str | None:
        if not key:
            return None
        kind, name = place_of_key(key)
        if kind == "body":
            return checked(key, path_problem(name))
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", name) or not name.strip("-_"):
            raise ValueError("write header: and a header's name, like header:X-Event-Id")
        return key


class CorsSetting(Shape):
    """Which pages of other origins may call."""

    enabled: bool = False
    origins: Annotated[list[str], Field(max_length=100)] = []

    @field_validator("origins")
    @classmethod
    def _origins(cls, origins: list[str]) -> list[str]:
        for place, origin in enumerate(origins):
            if problem := origin_problem(origin):
                raise FieldRefused(str(place), problem)
        return origins


class RateLimit(Shape):
    calls_per_second: Annotated[float, Field(gt=0, le=100_000)] = 100
    burst: Annotated[int, Field(ge=1, le=1_000_000), WHOLE] = 200

    @field_validator("calls_per_second")
    @classmethod
    def _countable(cls, rate: float) -> float:
        if rate < SLOWEST_RATE:
            raise ValueError(f"write {SLOWEST_RATE:.5f} (about one call a day) or more")
        return rate


class WebhookRequest(Shape):
    """Everything that can be set on a webhook."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    enabled: bool = True
    folder: Annotated[
        Annotated[str, Field(max_length=200)] | None,
        Field(description="Where it stands in the list, like Shops/Europe. Calls are not judged by it."),
    ] = None
    tags: Annotated[
        list[str], Field(max_length=200, description="Words to find it by. Calls are not judged by them.")
    ] = []
    authentication: Authentication
    field_mapping: FieldMapping = FieldMapping()
    synchronous_response: SynchronousResponse = SynchronousResponse()
    duplicate_protection: DuplicateProtection = DuplicateProtection()
    cors: CorsSetting = CorsSetting()
    ip_allowlist: Annotated[list[str], Field(max_length=1000)] = []
    payload_limit_bytes: Annotated[int, Field(ge=1, le=LARGEST_PAYLOAD_LIMIT), WHOLE] = PAYLOAD_LIMIT
    accepts_arrays: Annotated[
        bool | None,
        Field(
            description="Whether a body may be a JSON array, which is then read as its items. "
            "null: as its built-in sender does, otherwise not."
        ),
    ] = None
    rate_limit: RateLimit = RateLimit()
    schedule: ScheduleSetting | None = None
    history_retention_days: Annotated[int, Field(ge=1, le=3650), WHOLE] | None = None
    body_retention_days: Annotated[int, Field(ge=0, le=3650), WHOLE] | None = None

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        return checked(name, None if on_one_line(name) else "a name is printable text on one line")

    @field_validator("folder")
    @classmethod
    def _folder(cls, folder: str | None) -> str | None:
        return folder_of(folder or "")

    @field_validator("tags")
    @classmethod
    def _tags(cls, tags: list[str]) -> list[str]:
        return some_tags(tags)

    @field_validator("ip_allowlist")
    @classmethod
    def _ranges(cls, ranges: list[str]) -> list[str]:
        try:
            Allowlist.parse(ranges)
        except InvalidRanges as error:
            place, message = next(iter(error.errors.items()))
            raise FieldRefused(str(place), message) from None
        # Otherwise as it was written: a program that compares the answer with what it sent must find no difference.
        return [entry.strip() for entry in ranges]


def some_tags(written: list[str]) -> list[str]:
    for place, tag in enumerate(written):
        if problem := tag_problem(tag):
            raise FieldRefused(str(place), problem)
    tags = distinct(written)
    if len(tags) > MOST_TAGS:
        raise ValueError(f"a webhook has at most {MOST_TAGS} tags")
    return tags


SLOWEST_RATE = 0.00001
"""Of rates that are much smaller the waits are beyond what can be counted, and nothing would be limited."""

# What pydantic names in a path beside the fields: the member of a union that it tried.
_METHODS = {"none", "token", "hmac"}
_KINDS_OF_VALUE = {"str", "int", "function-before[_secret_length(), str]"}


def validated(shape: type[Shape], data: object) -> Any:
    """The request as its type, or ``Refused`` with a message for every wrong field at once."""
    try:
        return shape.model_validate(data, strict=True)  # "5" is no number, and "yes" no truth value
    except ValidationError as error:
        raise Refused("invalid_request", errors=field_errors(error, shape)) from None


MOST_MEANT = 20
"""Wrong fields of which it is said what was meant: to look for it takes longer than to write the field."""


def field_errors(error: ValidationError, asked: Any = None) -> list[FieldError]:
    """Pydantic's errors in our words: a dotted path in the caller's spelling, and never the value (it may be
    a secret). ``asked``: the type, where a misspelt name is to be answered with the one that was meant."""
    found: dict[str, str] = {}
    for one in error.errors(include_url=False):
        path = [str(step) for step in one["loc"]]
        if len(path) > 1 and path[0] == "authentication" and path[1] in _METHODS:
            del path[1]
        path = [step for step in path if step != Generate.__name__]
        while path and path[-1] in _KINDS_OF_VALUE:
            path.pop()
        cause = one.get("ctx", {}).get("error")
        if isinstance(cause, FieldRefused):
            path.append(to_camel(cause.field) if "_" in cause.field else cause.field)
        message = str(cause) if isinstance(cause, ValueError) else _in_words(one)
        if (
            one["type"] in _QUOTED
            and isinstance(one["input"], str)
            and _QUOTED[one["type"]].fullmatch(one["input"])
        ):
            message += ", without quotes"
        if one["type"] == "extra_forbidden" and len(found) < MOST_MEANT:
            message += _meant(asked, one["loc"])
        found.setdefault(".".join(path), message)
    return [FieldError(path, message) for path, message in found.items()]


def _meant(asked: Any, place: tuple[int | str, ...]) -> str:
    *way, name = map(str, place)
    kinds = _shapes(asked)
    for step in way:
        if step in _METHODS:  # which of several it is
            kinds = [
                kind
                for kind in kinds
                if "method" in kind.model_fields
                and get_args(kind.model_fields["method"].annotation) == (step,)
            ]
        elif not step.isdigit():
            fields = [field for kind in kinds for field in kind.model_fields.values() if field.alias == step]
            kinds = [inner for field in fields for inner in _shapes(field.annotation)]
    known = sorted({field.alias or "" for kind in kinds for field in kind.model_fields.values()})
    near = get_close_matches(name[:80], known, 1, 0.75)
    return f": did you mean {near[0]}?" if near else ""


def _shapes(kind: Any) -> list[type[Shape]]:
    if isinstance(kind, type) and issubclass(kind, Shape):
        return [kind]
    return [shape for part in get_args(kind) for shape in _shapes(part)]


def _in_words(error: ErrorDetails) -> str:
    """Pydantic speaks of types of Python, of input, and in regular expressions."""
    kind, context = error["type"], error.get("ctx", {})
    if kind.startswith("union_tag"):
        return "method must be none, token or hmac"
    if kind == "string_too_short" and context["min_length"] == 1:
        return "is required"
    if kind == "literal_error":
        return f"choose one of: {context['expected'].replace(' or ', ', ').replace(chr(39), '')}"
    if sentence := _SENTENCES.get(kind):
        return sentence.format(**{name: _plain(value) for name, value in context.items()})
    return error["msg"][:1].lower() + error["msg"][1:]


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


_SENTENCES = {
    kind: sentence
    for kinds, sentence in (
        ("missing", "is required"),
        ("extra_forbidden", "is not a known setting"),
        ("bool_type bool_parsing", "write true or false"),
        ("int_type int_parsing int_parsing_size int_from_float", "write a whole number"),
        ("float_type float_parsing finite_number", "write a number"),
        ("greater_than", "must be more than {gt}"),
        ("greater_than_equal", "must be {ge} or more"),
        ("less_than", "must be less than {lt}"),
        ("less_than_equal", "must be {le} or less"),
        ("string_type", "write a text, in quotes"),
        ("string_too_short", "must have {min_length} characters or more"),
        ("string_too_long", "must have {max_length} characters or fewer"),
        ("string_pattern_mismatch", "is not written as it has to be"),
        ("string_unicode", "has half of a character in it (a surrogate without the other one)"),
        ("list_type tuple_type", "write a list, between [ and ]"),
        ("too_short", "must have {min_length} entries or more"),
        ("too_long", "must have {max_length} entries or fewer"),
        ("dict_type model_type model_attributes_type", "write an object, between {{ and }}"),
    )
    for kind in kinds.split()
}

_NUMBER = re.compile(r"\s*[-+]?[0-9]{1,20}(\.[0-9]{1,20})?\s*")
_QUOTED = {"int_type": _NUMBER, "float_type": _NUMBER, "bool_type": re.compile("true|false", re.IGNORECASE)}
"""By the kind of error: a text that would be right if it were none."""


SECRETS: dict[str, dict[str, str]] = {
    "none": {},
    "token": {"token": "main", "secondToken": "second"},
    "hmac": {"secret": "main", "secondSecret": "second", "verifyToken": "verifyToken"},
}
"""By authentication method: the names of its secrets, each with the field of the vault it is kept in."""


def parts(request: WebhookRequest) -> tuple[WebhookSettings, dict[str, "str | Generate"]]:
    """The settings to store, and the secrets that were sent along, by their field in the vault."""
    authentication = request.authentication
    secrets: dict[str, str | Generate] = {}
    for name, field in SECRETS[authentication.method].items():
        value = getattr(authentication, to_snake(name))
        if value is not None:
            secrets[field] = value
    document = request.model_dump(by_alias=True, mode="json", exclude={"enabled"})
    for name in (*SECRETS[authentication.method], "presetVersion"):
        document["authentication"].pop(name, None)
    if isinstance(authentication, SignatureAuthentication) and authentication.provider != "custom":
        document["authentication"]["scheme"] = (
            None  # the preset's own, which a client sends back with the rest
        )
    if request.schedule is not None:
        document["schedule"]["headers"] = sorted(request.schedule.headers)
        secrets |= request.schedule.secrets()
    return msgspec.convert(document, WebhookSettings), secrets
