"""All settings: how a value is read, its default, what it is for, whether it is secret. All else is derived."""

import os
from collections.abc import Callable, Mapping
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args, overload
from urllib.parse import urlsplit

from postern.core.address import Allowlist
from postern.core.names import is_header_name
from postern.core.operations.shown_setting import ShownSetting
from postern.core.problems import FieldsRefused
from postern.core.visible import can_be_stored
from postern.core.watch.alarms import ALARMS, AlarmKind
from postern.core.watch.channels import ADDRESSES, SERVER, read_channels, read_mail_server
from postern.extras import missing

PREFIX = "POSTERN_"
T = TypeVar("T")
Name = TypeVar("Name", bound=str)


class SettingError(ValueError):
    """A wrong setting. The message names it and says what to write."""


# --- how values are read: each reader says in its error what the setting must be ---------------------------------------


def _number(least: int, most: int, what: str = "a number") -> Callable[[str], int]:
    def read(text: str) -> int:
        # Not isdigit alone: it is true for a superscript two, which is no number.
        if (
            not (text.isascii() and text.isdigit())
            or len(text) > len(str(most))
            or not least <= int(text) <= most
        ):
            raise ValueError(f"{what} from {least} to {most}")
        return int(text)

    return read


def _maybe(read: Callable[[str], T]) -> Callable[[str], T | None]:
    return lambda text: read(text) if text else None


def _host(text: str) -> str:
    try:
        text.encode("idna")
    except UnicodeError:
        raise ValueError("an address of this machine, or its name") from None
    return text


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        usable = text.startswith(("https://", "http://")) and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if text and not (usable and text.isascii() and text.isprintable() and " " not in text):
        raise ValueError("an address beginning with https:// or http://")
    return text


def _base_address(text: str) -> str:
    if "?" in text or "#" in text:
        raise ValueError("an address without ? and #")
    return _address(text).rstrip("/")


def database_address(text: str) -> str:
    # Most gateways and commands are told none, and a command that a gateway answers needs no SQLAlchemy.
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    if text.startswith("postgres://"):  # as many Postgres hosts write it
        text = f"postgresql://{text.removeprefix('postgres://')}"
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        url = None
    # In memory, what was acknowledged would be lost with the process. Options behind ? and SQLite's own addresses (file:…)
    # would make files of other names than they say.
    usable = url is not None and (
        (
            text.startswith("sqlite:///")
            and "?" not in text
            and url.database not in (None, "", ":memory:")
            and not url.database.startswith("file:")
        )
        or text.startswith(("postgresql://", "postgresql+psycopg://"))
    )
    if not usable:
        raise ValueError("sqlite:/// with the path of a file and no more, or postgresql://…")
    return text


def _database(text: str) -> str:
    return database_address(text) if text else text


def _header_name(text: str) -> str:
    if not is_header_name(text):
        raise ValueError("a header's name, like CF-Connecting-IP")
    return text


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _alarms(text: str) -> tuple[AlarmKind, ...]:
    read = _one_of(*ALARMS)
    return tuple(read(kind) for kind in _list(text))


def _dates(text: str) -> frozenset[date]:
    try:
        return frozenset(date.fromisoformat(day) for day in _list(text))
    except ValueError:
        raise ValueError("dates, like 2026-12-25") from None


def _ranges(text: str) -> Allowlist:
    try:
        return Allowlist.parse(_list(text))
    except FieldsRefused as error:
        raise ValueError(f"addresses or ranges: {next(iter(error.errors.values()))}") from None


def _one_of(*choices: Name) -> Callable[[str], Name]:
    def read(text: str) -> Name:
        for choice in choices:
            if choice == text:
                return choice
        raise ValueError("one of " + ", ".join(choices))

    return read


_on_off = _one_of("on", "off")
_seconds = _number(1, 3600, "a number of seconds")
_days = _number(1, 3650, "a number of days")


EngineName = Literal["embedded", "temporal", "restate", "dbos", "http", "shopify-flow", "none"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
"""The values of POSTERN_ENGINE; `wiring/engines.py` makes each engine."""


NEEDED: dict[EngineName, tuple[str, ...]] = {
    "http": ("http_url",),
    "restate": ("restate_url",),
    "dbos": ("dbos_database_url",),
    "shopify-flow": ("shopify_shop", "shopify_access_token"),
}
"""The settings without which an engine cannot be used."""


OF_COMMANDS = {"POSTERN_URL", "POSTERN_API_KEY", "POSTERN_API_KEY_FILE", "POSTERN_PROFILE"}
"""Variables of commands that ask a gateway over the network. They are no settings of the gateway."""


class EnvironmentSetting(Generic[T]):
    """An attribute of ``Settings``. Its variable in the environment has the same name in capitals."""

    name: str

    def __init__(self, read: Callable[[str], T], default: str, *, secret: bool = False) -> None:
        self.read = read
        self.default = default
        self.secret = secret
        self.help = ""

    def says(self, help: str) -> "EnvironmentSetting[T]":
        self.help = help
        return self

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    @overload
    def __get__(self, settings: None, owner: type) -> "EnvironmentSetting[T]": ...
    @overload
    def __get__(self, settings: object, owner: type) -> T: ...
    def __get__(self, settings: object | None, owner: type) -> Any:
        return self if settings is None else vars(settings)[self.name]

    def __set__(self, settings: object, value: T) -> None:
        vars(settings)[self.name] = value


class Settings:
    """The values in force."""

    host = EnvironmentSetting(_host, "127.0.0.1").says(
        "The address to listen on. 0.0.0.0 is every address of this machine."
    )
    port = EnvironmentSetting(_number(0, 65535), "8080").says("The port to listen on.")
    base_url = EnvironmentSetting(_base_address, "").says(
        "The address at which senders reach the gateway, like https://hooks.example.com. Default: http://host:port."
    )
    data_dir = EnvironmentSetting(Path, "./data").says(
        "The folder for the database, the engine's database and the generated key."
    )
    database_url = EnvironmentSetting(_database, "", secret=True).says(
        "sqlite:///… or postgresql://user@host/name (also postgres://…). Default: postern.db in the data folder."
    )
    engine = EnvironmentSetting(_one_of(*ENGINES), "embedded").says(
        f"The workflow engine: {', '.join(ENGINES[:-1])}, or {ENGINES[-1]}."
    )
    http_url = EnvironmentSetting(_address, "").says("Engine http: the URL that starts a workflow.")
    http_secret = EnvironmentSetting(str, "", secret=True).says(
        "Engine http: a secret like whsec_…; requests are then signed as in Standard Webhooks."
    )
    http_headers = EnvironmentSetting(str, "", secret=True).says(
        'Engine http: headers to send along, as JSON: {"Authorization": "Bearer …"}.'
    )
    http_inline = EnvironmentSetting(_on_off, "off").says(
        "Engine http: on, if its HTTP response is the workflow's answer to a synchronous call."
    )
    # A start itself takes no longer than these 20 seconds.
    http_timeout = EnvironmentSetting(_number(1, 20, "a number of seconds"), "10").says(
        "Engine http: seconds within which the engine must take a trigger, at most 20."
    )
    http_allowed_ranges = EnvironmentSetting(str, "").says(
        "Engine http: private ranges in which the engine may be, comma-separated, or none. Default: this machine and private networks."
    )
    temporal_address = EnvironmentSetting(str, "127.0.0.1:7233").says(
        "Engine temporal: host and port of the server."
    )
    temporal_namespace = EnvironmentSetting(str, "default").says("Engine temporal: the namespace.")
    temporal_api_key = EnvironmentSetting(str, "", secret=True).says(
        "Engine temporal: the API key of Temporal Cloud. Turns TLS on."
    )
    temporal_tls = EnvironmentSetting(_one_of("auto", "on", "off"), "auto").says(
        "Engine temporal: TLS on, off, or auto (on with an API key)."
    )
    temporal_targets = EnvironmentSetting(str, "Webhook Trigger@postern").says(
        "Engine temporal: what to start, as Type@task-queue, with #webhook for one webhook only; comma-separated."
    )
    restate_url = EnvironmentSetting(_base_address, "").says(
        "Engine restate: where the server takes requests (its ingress), like http://127.0.0.1:8081."
    )
    restate_api_key = EnvironmentSetting(str, "", secret=True).says(
        "Engine restate: the API key of Restate Cloud."
    )
    restate_targets = EnvironmentSetting(str, "WebhookTrigger/run").says(
        "Engine restate: what to start, as Service/handler, with #webhook for one webhook only; comma-separated."
    )
    dbos_database_url = EnvironmentSetting(_database, "", secret=True).says(
        "Engine dbos: the system database of your DBOS app, postgresql://user@host/name."
    )
    dbos_targets = EnvironmentSetting(str, "Webhook Trigger@postern").says(
        "Engine dbos: what to enqueue, as Workflow@queue, with #webhook for one webhook only; comma-separated."
    )
    shopify_shop = EnvironmentSetting(str, "").says(
        "Engine shopify-flow: the shop, like your-shop.myshopify.com."
    )
    shopify_access_token = EnvironmentSetting(str, "", secret=True).says(
        "Engine shopify-flow: the Admin API access token."
    )
    shopify_trigger = EnvironmentSetting(str, "webhook-trigger").says(
        "Engine shopify-flow: the handle of the trigger extension."
    )
    shopify_api_version = EnvironmentSetting(str, "2026-10").says(
        "Engine shopify-flow: the Admin API's version."
    )
    shopify_also_send = EnvironmentSetting(_list, "").says(
        "Engine shopify-flow: fields that the trigger declares besides the six variables: payload, responseUrl, responseToken, responseDeadline."
    )
    shopify_payload_limit = EnvironmentSetting(_number(1000, 10_000_000), "50000").says(
        "Engine shopify-flow: the largest trigger in bytes."
    )
    workflows = EnvironmentSetting(Path, "./workflows").says(
        "The file or folder of workflows for the embedded engine."
    )
    workflows_at_once = EnvironmentSetting(_number(1, 1000), "100").says(
        "How many runs of the embedded engine may work at the same moment. Sleeping runs do not count."
    )
    secret_keys = EnvironmentSetting(_list, "", secret=True).says(
        "Keys that encrypt stored secrets, comma-separated; the first one encrypts. Default: a generated file in the data folder."
    )
    admin_key = EnvironmentSetting(str, "", secret=True).says(
        "An API key with access level admin that is valid from the first start, for automation. At least 32 random characters, because guesses are not limited."
    )
    admin_password = EnvironmentSetting(str, "", secret=True).says(
        "The password of the console's first user, admin. Default: generated at the first start and printed once."
    )
    trusted_proxies = EnvironmentSetting(_ranges, "").says(
        "Addresses or ranges of the proxies in front, comma-separated. Only they are believed about the client's address."
    )
    client_header = EnvironmentSetting(_header_name, "X-Forwarded-For").says(
        "The header in which the trusted proxies name the client: X-Forwarded-For, Forwarded, or one like CF-Connecting-IP."
    )
    outbound_allowed = EnvironmentSetting(_ranges, "").says(
        "Private addresses or ranges that schedules and incident messages may reach, comma-separated, like 10.1.0.0/16. All others are refused."
    )
    history_days = EnvironmentSetting(_days, "30").says(
        "Days that calls stay in the history, unless a webhook has its own setting."
    )
    body_days = EnvironmentSetting(_maybe(_number(0, 3650, "a number of days")), "").says(
        "Days that the bodies of calls and answers are kept. Default: as long as the history."
    )
    history_rows = EnvironmentSetting(_number(0, 10**12), "0").says(
        "The largest number of calls that are kept; the oldest go first. 0: no limit."
    )
    audit_days = EnvironmentSetting(_days, "365").says(
        "Days that the audit log, closed incidents, and finished replays of many are kept."
    )
    alarms = EnvironmentSetting(_alarms, ",".join(ALARMS)).says(
        "The alarms that open incidents, comma-separated. A webhook may switch off more; silence also needs its rhythm."
    )
    quiet_days = EnvironmentSetting(_dates, "").says(
        "Public holidays, comma-separated, like 2026-12-25. On these, no call is expected if a webhook's rhythm names days of the week."
    )
    tell = EnvironmentSetting(read_channels, "", secret=True).says(
        f"Where messages about incidents go: {ADDRESSES}."
    )
    tell_values = EnvironmentSetting(_on_off, "off").says(
        "on: messages about incidents hold the mapped values (fieldOne to fieldFour) of the newest calls whose senders have proven themselves."
    )
    smtp_url = EnvironmentSetting(_maybe(read_mail_server), "", secret=True).says(
        f"The mail server for mailto: {SERVER}."
    )
    log = EnvironmentSetting(_one_of("auto", "json", "text", "off"), "auto").says(
        "The format of log lines: json, text, or auto (text on a terminal). off: no line for each call, only troubles, as text."
    )
    example = EnvironmentSetting(_on_off, "off").says(
        "on: make the example webhook at the first start and print a curl command that calls it. `postern serve --example` also writes its workflow."
    )
    body_timeout = EnvironmentSetting(_seconds, "30").says(
        "Seconds within which a whole request must arrive."
    )

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self.environment = dict(os.environ if environment is None else environment)
        problems = []
        self.sources: dict[str, str] = {}
        """The variable from which a setting came, by the setting's name. Defaults are not in it."""
        for setting in SETTINGS:
            try:
                setting.__set__(self, setting.read(self._text(setting)))
            except SettingError as error:
                problems.append(str(error))
            except ValueError as error:
                problems.append(f"{setting.variable} must be {error}")
        problems += self._unknown()
        if not problems:
            problems += self._check()
        if problems:
            raise SettingError("\n".join(problems))

    def _text(self, setting: EnvironmentSetting[Any]) -> str:
        text = self.environment.get(setting.variable, "")
        file = self.environment.get(setting.variable + "_FILE", "") if setting.secret else ""
        if text and file:
            raise SettingError(f"give {setting.variable} or {setting.variable}_FILE, not both")
        if file:
            try:
                text = Path(file).read_text("utf-8").strip()
            except OSError as error:
                raise SettingError(f"{setting.variable}_FILE cannot be read: {error.strerror}") from None
            except UnicodeDecodeError:
                raise SettingError(f"{setting.variable}_FILE is not a text in UTF-8") from None
        if not can_be_stored(text):  # what the environment held was not UTF-8
            raise SettingError(f"{setting.variable} is not a text in UTF-8")
        if text:
            self.sources[setting.name] = setting.variable + ("_FILE" if file else "")
        return text or setting.default

    def _unknown(self) -> list[str]:
        """Reports misspelt settings, which must not be ignored silently."""
        known = {setting.variable for setting in SETTINGS} | {
            setting.variable + "_FILE" for setting in SETTINGS if setting.secret
        }
        return [
            f"{name} is not a setting{_meant(name, known)}"
            for name in sorted(self.environment)
            if name.startswith(PREFIX) and name not in known and name not in OF_COMMANDS
        ]

    def _check(self) -> list[str]:
        problems = []
        if self.admin_key and len(self.admin_key) < 32:
            problems.append(
                "POSTERN_ADMIN_KEY must have 32 characters or more; make one with openssl rand -hex 24"
            )
        needed = NEEDED.get(self.engine, ())
        if not all(vars(self)[name] for name in needed):
            names = " and ".join(PREFIX + name.upper() for name in needed)
            problems.append(f"POSTERN_ENGINE={self.engine} needs {names}")
        if self.smtp_url is None and any(channel.kind == "mailto" for channel in self.tell):
            problems.append("POSTERN_TELL with mailto: needs POSTERN_SMTP_URL")
        extras = (
            None if self.is_sqlite else missing("postgres", "POSTERN_DATABASE_URL=postgresql://…"),
            missing(self.engine, f"POSTERN_ENGINE={self.engine}")
            if self.engine in ("temporal", "dbos")
            else None,
        )
        problems += [sentence for sentence in extras if sentence]
        if any(len(key) < 16 for key in self.secret_keys):
            problems.append("POSTERN_SECRET_KEYS: each key must have 16 characters or more")
        return problems

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{(self.data_dir / 'postern.db').resolve()}"

    @property
    def is_sqlite(self) -> bool:
        return self.database.startswith("sqlite")

    def listed(self) -> list[ShownSetting]:
        """Lists every setting with its value for `postern settings`; of secrets only whether they are set."""
        return [
            ShownSetting(
                variable=setting.variable,
                value=("set" if setting.name in self.sources else "not set")
                if setting.secret
                else self._text(setting),
                default=setting.default,
                source=self.sources.get(setting.name),
                secret=setting.secret,
                help=setting.help,
            )
            for setting in SETTINGS
        ]


def _meant(name: str, known: set[str]) -> str:
    own = [variable.removeprefix(PREFIX) for variable in sorted(known | OF_COMMANDS)]
    near = get_close_matches(name.removeprefix(PREFIX), own, 1, 0.66)
    return f": did you mean {PREFIX}{near[0]}?" if near else "; `postern settings` lists them"


SETTINGS: list[EnvironmentSetting[Any]] = [
    setting for setting in vars(Settings).values() if isinstance(setting, EnvironmentSetting)
]
