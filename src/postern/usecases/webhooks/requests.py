"""Requests for webhooks, as every surface writes them. They are made of the settings in ``core/webhooks/settings.py``, with
their defaults and bounds. Only what a request has besides is written here: mostly secrets, which never go out again.
"""

from collections.abc import Callable
from functools import reduce
from operator import or_
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec.structs import replace
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    create_model,
    field_validator,
)
from pydantic.alias_generators import to_camel, to_snake

from postern import presets
from postern.core.deliveries.delivery import FIELD_NAMES
from postern.core.documents import Document
from postern.core.names import sent_header_problem
from postern.core.problems import FieldsRefused
from postern.core.schedules import parse_schedule
from postern.core.signatures import scheme as schemes
from postern.core.signatures.handshake import OF_A_SCHEME
from postern.core.signatures.outgoing import signing_key
from postern.core.webhooks import settings
from postern.core.webhooks.bounds import Bounds
from postern.core.webhooks.conditions import values_problem
from postern.core.webhooks.settings import Setting, WebhookSettings
from postern.core.webhooks.target import value_problem
from postern.usecases.shapes import WHOLE, Shape

LONGEST_TOKEN = 1024
LONGEST_SIGNING_SECRET = 4096
"""Bytes. It may be an RSA key."""
MOST_HEADERS = 20
LONGEST_HEADER = 4096

SEND_AGAIN = settings.SendAgainSetting.secrets["token"]
"""The vault's field for the token of the sender's API."""
SECRET_PREFIX = settings.ScheduleSetting.secrets["headers"]
"""The vault's fields for the headers of a schedule begin so."""
TARGET_PREFIX, TARGET_KEY = (settings.TargetSetting.secrets[name] for name in ("headers", "signingSecret"))
"""The vault's fields for the headers of a target begin so, and its field for the key that signs what is sent there."""


class SettingRequest(Shape):
    """A request for one setting. ``asks_for`` makes its fields. Each check belongs to one field, after those it looks at,
    and counts for defaults too: so no wrong field hides another."""

    model_config = ConfigDict(validate_default=True)
    kind: ClassVar[type[Setting]]

    def setting(self) -> Any:
        """The setting to store."""
        return self.kind(**{name: self.stored(name) for name in self.kind.__struct_fields__})

    def stored(self, name: str) -> Any:
        return _stored(getattr(self, name))


def _stored(value: Any) -> Any:
    if isinstance(value, list):
        return [_stored(item) for item in value]
    return value.setting() if isinstance(value, SettingRequest) else value


SettingRequestT = TypeVar("SettingRequestT", bound=SettingRequest)


_REQUESTS: "dict[type[Setting], type[SettingRequest]]" = {}


def asks_for(kind: type[Setting]) -> Callable[[type[SettingRequestT]], type[SettingRequestT]]:
    """Gives a request the fields of this setting, except those that it has already."""

    def made(request: type[SettingRequestT]) -> type[SettingRequestT]:
        config, hints = kind.__struct_config__, get_type_hints(kind, include_extras=True)
        fields: Any = {}
        if config.tag_field:
            fields[config.tag_field] = (Literal[config.tag], ...)
        for field in msgspec.structs.fields(kind):
            if field.name in request.model_fields:
                # Only its place, so that errors come in the order of the settings.
                fields[field.name] = (Any, None)
            else:
                default = ... if field.required else _default(field)
                fields[field.name] = (_asked(hints[field.name]), default)
                if field.encode_name != to_camel(field.name):
                    fields[field.name] = (fields[field.name][0], Field(default, alias=field.encode_name))
        stated = create_model(kind.__name__, __base__=SettingRequest, **fields)
        model: Any = create_model(
            request.__name__,
            __base__=(request, stated),
            __module__=request.__module__,
            __doc__=vars(request).get("__doc__") or kind.__doc__,
        )
        model.kind = kind
        _REQUESTS[kind] = model
        return cast(type[SettingRequestT], model)

    return made


def request_of(kind: type[Setting]) -> type[SettingRequest]:
    """The request for a setting: the one that is written below, or one without anything besides."""
    plain = type(f"{kind.__name__}Request", (SettingRequest,), {"__module__": __name__})
    return _REQUESTS.get(kind) or asks_for(kind)(plain)


_STATED = ("ge", "gt", "le", "min_length", "max_length", "description")


def _asked(kind: Any) -> Any:
    """The type of a request's field, made of the setting's."""
    if get_origin(kind) is Annotated:
        inner, *said = get_args(kind)
        stated = {
            name: value
            for mark in said
            for name in _STATED
            if (value := getattr(mark, name, None)) is not None
        }
        if more := [
            mark.extra_json_schema
            for mark in said
            if isinstance(mark, msgspec.Meta) and mark.extra_json_schema
        ]:
            stated["json_schema_extra"] = more[0]
        check = [AfterValidator(mark.check) for mark in said if isinstance(mark, Bounds) and mark.check]
        return Annotated[_asked(inner), Field(**stated), *check, *([WHOLE] if inner is int else [])]
    if get_origin(kind) is list:
        return list[_asked(get_args(kind)[0])]  # type: ignore[misc]
    if get_origin(kind) in (UnionType, Union):
        return reduce(or_, map(_asked, get_args(kind)))
    return request_of(kind) if isinstance(kind, type) and issubclass(kind, Setting) else kind


def _default(field: msgspec.structs.FieldInfo) -> Any:
    default = settings.default_of(field)
    return request_of(type(default))() if isinstance(default, Setting) else default


class Generate(Shape):
    """Have a strong random secret made. The console shows it."""

    generate: Literal[True]


def _at_most(longest: int) -> BeforeValidator:
    def secret_length(value: object) -> object:
        if isinstance(value, str) and not 1 <= len(value.encode("utf-8", "surrogatepass")) <= longest:
            raise ValueError(f"a secret has 1 to {longest} bytes")
        return value

    return BeforeValidator(secret_length)


NO_SECRET = 'is required; for a webhook, {"generate": true} has a strong one made'


def _brought(value: Any, info: ValidationInfo) -> Any:
    """A new webhook brings its secrets along. The context of a change is the stored webhook."""
    if value is None and info.context is None:
        raise ValueError(NO_SECRET)
    return value


AskedSecret = Annotated[str, _at_most(LONGEST_TOKEN)] | Generate | None
SigningSecret = Annotated[str, _at_most(LONGEST_SIGNING_SECRET)] | Generate | None


@asks_for(settings.NoAuthentication)
class NoAuthentication(SettingRequest):
    pass


@asks_for(settings.TokenAuthentication)
class TokenAuthentication(SettingRequest):
    token: AskedSecret = Field(default=None, repr=False)
    second_token: AskedSecret = Field(default=None, repr=False)

    @field_validator("username", check_fields=False)
    @classmethod
    def _named(cls, username: str | None, info: ValidationInfo) -> str | None:
        if info.data.get("placement") == "basic" and not username:
            raise ValueError("the Basic placement needs a username; the token is the password")
        return username

    @field_validator("token", "second_token")
    @classmethod
    def _can_be_sent(cls, token: AskedSecret, info: ValidationInfo) -> Any:
        fits = not isinstance(token, str) or (
            token == token.strip() and token.isascii() and token.isprintable()
        )
        if info.data.get("placement") in ("header", "bearer") and not fits:
            raise ValueError("a token that travels in a header is printable ASCII without spaces at its ends")
        return token if info.field_name == "second_token" else _brought(token, info)


@asks_for(settings.SignatureAuthentication)
class SignatureAuthentication(SettingRequest):
    secret: SigningSecret = Field(default=None, repr=False)
    second_secret: SigningSecret = Field(default=None, repr=False)
    verify_token: AskedSecret = Field(default=None, repr=False)
    preset_version: Annotated[int, WHOLE] | None = None

    @field_validator("provider", check_fields=False)
    @classmethod
    def _known(cls, provider: str) -> str:
        known = [*presets.names(), "custom"]
        if provider not in known:
            meant = "".join(f"did you mean {similar}? " for similar in presets.nearest(provider)[:1])
            raise ValueError(f"{meant}choose one of: {', '.join(known)}")
        return provider

    @field_validator("scheme", check_fields=False)
    @classmethod
    def _readable(cls, scheme: Document | None, info: ValidationInfo) -> Document | None:
        if info.data.get("provider") == "custom":
            if scheme is None:
                raise ValueError("is required for a custom scheme")
            if wrong := schemes.problems(scheme):
                raise FieldsRefused({problem.field: problem.message for problem in wrong})
        return scheme

    @field_validator("secret")
    @classmethod
    def _given(cls, secret: SigningSecret, info: ValidationInfo) -> Any:
        return _brought(secret, info)


AskedAuthentication = NoAuthentication | TokenAuthentication | SignatureAuthentication


@asks_for(settings.ConditionRow)
class ConditionRowRequest(SettingRequest):
    @field_validator("values", mode="before", check_fields=False)
    @classmethod
    def _as_texts(cls, values: Any) -> Any:
        """Takes numbers and truth values without quotes, as YAML has them."""
        if not isinstance(values, list):
            return values
        return [
            msgspec.json.encode(value).decode()
            if isinstance(value, bool | int | float) and abs(value) < 2**63
            else value
            for value in values
        ]

    @field_validator("values", check_fields=False)
    @classmethod
    def _as_many(cls, values: list[str], info: ValidationInfo) -> list[str]:
        if "operator" in info.data and (problem := values_problem(info.data["operator"], values)):
            raise ValueError(problem)
        return values


SECRETS = {kind.method: kind.secrets for kind in get_args(settings.Authentication)}
"""By authentication method: the names of its secrets, each with the field of the vault it is kept in."""


class HeadersRequest(SettingRequest):
    """A setting with headers whose values are secrets."""

    place: ClassVar[str]
    """Its name among the settings."""
    headers: Annotated[dict[str, str | None], Field(max_length=MOST_HEADERS, repr=False)] = {}

    @field_validator("headers", mode="before")
    @classmethod
    def _names_alone(cls, headers: Any) -> Any:
        """Takes a list of names, as answers show them. Their values stay."""
        is_list = isinstance(headers, list) and all(isinstance(name, str) for name in headers)
        return dict.fromkeys(headers) if is_list else headers

    @field_validator("headers")
    @classmethod
    def _headers(cls, headers: dict[str, str | None], info: ValidationInfo) -> dict[str, str | None]:
        if len({name.lower() for name in headers}) < len(headers):
            raise ValueError("a header is named twice")
        wrong = {}
        for name, value in headers.items():
            if problem := sent_header_problem(name) or cls.name_problem(name):
                wrong[name] = problem
            elif value is not None and not (
                1 <= len(value) <= LONGEST_HEADER and value.isascii() and value.isprintable()
            ):
                wrong[name] = f"a value has 1 to {LONGEST_HEADER} printable ASCII characters"
            elif value is None and (
                info.context is None or getattr(info.context.settings, cls.place) is None
            ):
                wrong[name] = "is required"
            elif value is not None and (problem := cls.value_problem(value)):
                wrong[name] = problem
        if wrong:
            raise FieldsRefused(wrong)
        return headers

    @classmethod
    def name_problem(cls, name: str) -> str | None:
        return None

    @classmethod
    def value_problem(cls, value: str) -> str | None:
        return None

    def stored(self, name: str) -> Any:
        return sorted(self.headers) if name == "headers" else super().stored(name)


@asks_for(settings.ScheduleSetting)
class ScheduleRequest(HeadersRequest):
    place = "schedule"

    @field_validator("every", "cron", "time_zone", check_fields=False)
    @classmethod
    def _when(cls, value: Any, info: ValidationInfo) -> Any:
        if info.field_name == "time_zone":
            parse_schedule("1d", time_zone=value)
        elif info.field_name == "every" and value is not None:
            parse_schedule(value)
        elif info.field_name == "cron" and (value is not None or "every" in info.data):
            parse_schedule(info.data.get("every"), value)
        return value


OURS = {"content-type", "idempotency-key", "webhook-id", "webhook-timestamp", "webhook-signature"}


@asks_for(settings.TargetSetting)
class TargetRequest(HeadersRequest):
    place = "target"
    signing_secret: SigningSecret = Field(default=None, repr=False)

    @classmethod
    def name_problem(cls, name: str) -> str | None:
        return f"the gateway sets {name} itself" if name.lower() in OURS else None

    @classmethod
    def value_problem(cls, value: str) -> str | None:
        return value_problem(value)

    @field_validator("signing_secret")
    @classmethod
    def _signs(cls, secret: SigningSecret) -> SigningSecret:
        if isinstance(secret, str):
            signing_key(secret)
        return secret


@asks_for(settings.SendAgainSetting)
class SendAgainSettingRequest(SettingRequest):
    token: Annotated[str, _at_most(LONGEST_SIGNING_SECRET)] | None = Field(default=None, repr=False)

    @field_validator("token")
    @classmethod
    def _given(cls, token: str | None, info: ValidationInfo) -> Any:
        if token is None and (info.context is None or info.context.settings.send_again is None):
            raise ValueError("is required")
        return token


@asks_for(settings.TurnsSetting)
class TurnsRequest(SettingRequest):
    @field_validator("longest_wait_seconds", check_fields=False)
    @classmethod
    def _longer_than_the_quiet(cls, longest: int | None, info: ValidationInfo) -> int | None:
        quiet = info.data.get("newest_after_seconds", longest)
        if longest is not None and (quiet is None or longest < quiet):
            raise ValueError("ends the wait of newestAfterSeconds, and is as long at least")
        return longest


@asks_for(WebhookSettings)
class WebhookRequest(SettingRequest):
    """Everything that can be set on a webhook."""

    enabled: bool = True
    authentication: AskedAuthentication = Field(discriminator="method")
    target: TargetRequest | None = None
    turns: TurnsRequest | None = None
    schedule: ScheduleRequest | None = None
    send_again: SendAgainSettingRequest | None = None

    @field_validator("only_path", check_fields=False)
    @classmethod
    def _has_a_path(cls, only_path: bool, info: ValidationInfo) -> bool:
        if only_path and not info.data.get("path", True):
            raise ValueError("without a path the short code is the only URL")
        return only_path

    @field_validator("arrays", check_fields=False)
    @classmethod
    def _one_answer(cls, arrays: str | None, info: ValidationInfo) -> str | None:
        waits: Any = info.data.get("synchronous_response")
        if arrays == "each" and waits and waits.enabled:
            raise ValueError("a caller who waits hears one workflow: read arrays whole, or answer at once")
        return arrays

    @field_validator("turns")
    @classmethod
    def _takes_turns(cls, turns: Any, info: ValidationInfo) -> Any:
        if turns is None:
            return None
        wrong = {}
        mapped: Any = info.data.get("field_mapping")
        if mapped and turns.by in FIELD_NAMES and turns.by not in mapped.setting().paths():
            wrong["by"] = f"{turns.by} is not mapped: map it, or write its path here"
        waits: Any = info.data.get("synchronous_response")
        if waits and waits.enabled:
            wrong["atOnce"] = "a caller who waits cannot wait for a turn: answer at once, or take no turns"
        elif turns.at_once is None and turns.by is None and turns.newest_after_seconds is None:
            wrong["atOnce"] = "write atOnce, by or newestAfterSeconds, or null for no turns"
        if wrong:
            raise FieldsRefused(wrong)
        return turns

    @field_validator("handshake", check_fields=False)
    @classmethod
    def _signs(cls, handshake: str | None, info: ValidationInfo) -> str | None:
        how: Any = info.data.get("authentication")
        if handshake in OF_A_SCHEME and how and how.method != "hmac":
            raise ValueError("belongs to a sender that signs: choose the method hmac")
        return handshake

    def parts(self) -> tuple[WebhookSettings, dict[str, str | Generate]]:
        """The settings to store, and the secrets that were sent along, by their field in the vault."""
        made: WebhookSettings = self.setting()
        how = made.authentication
        if isinstance(how, settings.SignatureAuthentication) and how.provider != "custom":
            # The scheme is the preset's. A client has sent it back with the rest.
            made = replace(made, authentication=replace(how, scheme=None))
        sent = {
            field: getattr(self.authentication, to_snake(name))
            for name, field in SECRETS[made.authentication.method].items()
        }
        if self.send_again is not None:
            sent[SEND_AGAIN] = self.send_again.token
        if self.target is not None:
            sent[TARGET_KEY] = self.target.signing_secret
            sent |= {TARGET_PREFIX + name.lower(): value for name, value in self.target.headers.items()}
        if self.schedule is not None:
            sent |= {SECRET_PREFIX + name.lower(): value for name, value in self.schedule.headers.items()}
        return made, {field: value for field, value in sent.items() if value is not None}
