"""Every setting, once: its name in the environment, its default, what it is for, whether it is secret. All else is derived."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from postern.core.address import Allowlist, InvalidRanges

PREFIX = "POSTERN_"


class SettingError(ValueError):
    """A setting that cannot be used; the message names it and says what to write."""


def _port(text: str) -> int:
    if not text.isdigit() or not 0 <= int(text) <= 65535:
        raise ValueError("a number from 0 to 65535")
    return int(text)


def _whole(text: str) -> int:
    if not text.isdigit():
        raise ValueError("a whole number")
    return int(text)


def _days(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 3650:
        raise ValueError("a number of days from 1 to 3650")
    return int(text)


def _maybe_days(text: str) -> int | None:
    if text and (not text.isdigit() or int(text) > 3650):
        raise ValueError("a number of days from 0 to 3650")
    return int(text) if text else None


def _address(text: str) -> str:
    if text and not text.startswith(("http://", "https://")):
        raise ValueError("an address beginning with https:// or http://")
    return text.rstrip("/")


def _database(text: str) -> str:
    if text and not text.startswith(("sqlite:///", "postgresql://", "postgresql+psycopg://")):
        raise ValueError("sqlite:///… or postgresql://…")
    return text


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _ranges(text: str) -> list[str]:
    ranges = _list(text)
    try:
        Allowlist.parse(ranges)
    except InvalidRanges as error:
        raise ValueError(f"addresses or ranges: {next(iter(error.errors.values()))}") from None
    return ranges


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError("one of " + ", ".join(choices))
        return text

    return read


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    default: str
    help: str
    read: Callable[[str], Any] = str
    secret: bool = False

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


SETTINGS = [
    Setting("host", "127.0.0.1", "The address to listen on. 0.0.0.0 is every address of this machine."),
    Setting("port", "8080", "The port to listen on.", _port),
    Setting(
        "base_url",
        "",
        "The address under which the outside world reaches the gateway, like https://hooks.example.com. Default: http://host:port.",
        _address,
    ),
    Setting("data_dir", "./data", "The folder for the database, the engine's database and the generated key.", Path),
    Setting(
        "database_url", "", "sqlite:///… (default: postern.db in the data folder) or postgresql://user@host/name.", _database, secret=True
    ),
    Setting(
        "engine",
        "embedded",
        "The workflow engine: embedded, temporal, http, shopify-flow, or none.",
        _one_of("embedded", "temporal", "http", "shopify-flow", "none"),
    ),
    Setting("http_url", "", "Engine http: the URL that starts a workflow.", _address),
    Setting("http_secret", "", "Engine http: whsec_… and requests are signed as Standard Webhooks says.", secret=True),
    Setting("http_headers", "", 'Engine http: headers to send along, as JSON: {"Authorization": "Bearer …"}.', secret=True),
    Setting(
        "http_inline", "off", "Engine http: on when its HTTP response is the workflow's answer to a synchronous call.", _one_of("on", "off")
    ),
    Setting("http_timeout", "10", "Engine http: seconds within which it must take a trigger.", _whole),
    Setting(
        "http_allowed_ranges",
        "",
        "Engine http: where it may be besides the public internet, comma-separated, or none. Default: this machine and private networks.",
    ),
    Setting("temporal_address", "127.0.0.1:7233", "Engine temporal: host and port of the server."),
    Setting("temporal_namespace", "default", "Engine temporal: the namespace."),
    Setting("temporal_api_key", "", "Engine temporal: the API key of Temporal Cloud. Turns TLS on.", secret=True),
    Setting("temporal_tls", "auto", "Engine temporal: TLS on, off, or auto (on with an API key).", _one_of("auto", "on", "off")),
    Setting(
        "temporal_targets",
        "Webhook Trigger@postern",
        "Engine temporal: what to start, as Type@task-queue, with #webhook for one webhook only; comma-separated.",
    ),
    Setting("shopify_shop", "", "Engine shopify-flow: the shop, like your-shop.myshopify.com."),
    Setting("shopify_access_token", "", "Engine shopify-flow: the Admin API access token.", secret=True),
    Setting("shopify_trigger", "webhook-trigger", "Engine shopify-flow: the handle of the trigger extension."),
    Setting("shopify_api_version", "2026-10", "Engine shopify-flow: the Admin API's version."),
    Setting(
        "shopify_also_send",
        "",
        "Engine shopify-flow: what the trigger declares besides the six variables: payload, responseUrl, responseToken, responseDeadline.",
        _list,
    ),
    Setting("shopify_payload_limit", "50000", "Engine shopify-flow: the largest trigger in bytes.", _whole),
    Setting("workflows", "./workflows", "File or folder of workflows that the embedded engine runs.", Path),
    Setting(
        "secret_keys",
        "",
        "Keys that encrypt stored secrets, comma-separated; the first one encrypts. Default: a generated file in the data folder.",
        _list,
        secret=True,
    ),
    Setting(
        "admin_key",
        "",
        "An API key with access level admin that is valid from the first start, for automation. 16 characters or more.",
        secret=True,
    ),
    Setting(
        "admin_password",
        "",
        "The password of the console's first user, admin. Default: generated at the first start and printed once.",
        secret=True,
    ),
    Setting(
        "trusted_proxies",
        "",
        "Addresses or ranges of the proxies in front, comma-separated. Only what they say about the client is believed.",
        _list,
    ),
    Setting(
        "client_header",
        "X-Forwarded-For",
        "The header in which the trusted proxies name the client: X-Forwarded-For, Forwarded, or one like CF-Connecting-IP.",
    ),
    Setting(
        "outbound_allowed",
        "",
        "Private addresses or ranges that schedules may fetch from, comma-separated, like 10.1.0.0/16. All others are refused.",
        _ranges,
    ),
    Setting("history_days", "30", "Days that calls stay in the history, where a webhook does not say otherwise.", _days),
    Setting("body_days", "", "Days that the bodies of calls and answers are kept. Default: as long as the history.", _maybe_days),
    Setting("history_rows", "0", "The most calls kept in all; the oldest go first. 0: no such limit.", _whole),
    Setting("audit_days", "365", "Days that the notes of who changed what, and replays of many that are over, are kept.", _days),
    Setting(
        "log",
        "auto",
        "How log lines look: json, text, or auto (text on a terminal). off: no line for each call, only what went wrong, as text.",
        _one_of("auto", "json", "text", "off"),
    ),
    Setting("example", "off", "on: make the example webhook at the first start and print a curl that calls it.", _one_of("on", "off")),
    Setting("body_timeout", "30", "Seconds within which a request must have arrived whole.", _whole),
]

_BY_NAME = {setting.name: setting for setting in SETTINGS}


class Settings:
    """The values in force. Attribute names are the settings' names."""

    host: str
    port: int
    base_url: str
    data_dir: Path
    database_url: str
    engine: str
    http_url: str
    http_secret: str
    http_headers: str
    http_inline: str
    http_timeout: int
    http_allowed_ranges: str
    temporal_address: str
    temporal_namespace: str
    temporal_api_key: str
    temporal_tls: str
    temporal_targets: str
    shopify_shop: str
    shopify_access_token: str
    shopify_trigger: str
    shopify_api_version: str
    shopify_also_send: list[str]
    shopify_payload_limit: int
    workflows: Path
    secret_keys: list[str]
    admin_key: str
    admin_password: str
    trusted_proxies: list[str]
    client_header: str
    outbound_allowed: list[str]
    history_days: int
    body_days: int | None
    history_rows: int
    audit_days: int
    log: str
    example: str
    body_timeout: int

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self.environment = dict(os.environ if environment is None else environment)
        problems = []
        self.sources: dict[str, str] = {}
        """By setting, where it is not the default: the variable that it came from."""
        for setting in SETTINGS:
            try:
                text = self._text(setting)
                setattr(self, setting.name, setting.read(text))
            except ValueError as error:
                problems.append(f"{setting.variable} must be {error}" if not isinstance(error, SettingError) else str(error))
        problems += self._unknown()
        if not problems:
            problems += self._check()
        if problems:
            raise SettingError("\n".join(problems))

    def _text(self, setting: Setting) -> str:
        text = self.environment.get(setting.variable, "")
        file = self.environment.get(setting.variable + "_FILE", "") if setting.secret else ""
        if text and file:
            raise SettingError(f"give {setting.variable} or {setting.variable}_FILE, not both")
        if file:
            try:
                text = Path(file).read_text().strip()
            except OSError as error:
                raise SettingError(f"{setting.variable}_FILE cannot be read: {error.strerror}") from None
        if text:
            self.sources[setting.name] = setting.variable + ("_FILE" if file else "")
        return text or setting.default

    def _unknown(self) -> list[str]:
        """A misspelt setting must not be silently ignored."""
        known = {setting.variable for setting in SETTINGS} | {setting.variable + "_FILE" for setting in SETTINGS if setting.secret}
        return [
            f"{name} is not a setting; `postern settings` lists them"
            for name in sorted(self.environment)
            if name.startswith(PREFIX) and name not in known
        ]

    def _check(self) -> list[str]:
        problems = []
        if self.admin_key and len(self.admin_key) < 16:
            problems.append("POSTERN_ADMIN_KEY must have 16 characters or more")
        if self.engine == "http" and not self.http_url:
            problems.append("POSTERN_ENGINE=http needs POSTERN_HTTP_URL")
        if self.engine == "shopify-flow" and not (self.shopify_shop and self.shopify_access_token):
            problems.append("POSTERN_ENGINE=shopify-flow needs POSTERN_SHOPIFY_SHOP and POSTERN_SHOPIFY_ACCESS_TOKEN")
        if any(len(key) < 16 for key in self.secret_keys):
            problems.append("POSTERN_SECRET_KEYS: each key must have 16 characters or more")
        return problems

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{(self.data_dir / 'postern.db').resolve()}"

    @property
    def is_sqlite(self) -> bool:
        return self.database.startswith("sqlite")

    def listed(self) -> list[dict[str, Any]]:
        """For `postern settings`: every setting with its value in force; of secrets only whether they are set."""
        return [
            {
                "variable": setting.variable,
                "value": ("set" if setting.name in self.sources else "not set") if setting.secret else self._text(setting),
                "default": setting.default,
                "source": self.sources.get(setting.name),
                "secret": setting.secret,
                "help": setting.help,
            }
            for setting in SETTINGS
        ]
