"""Whatever a setting holds, it is taken or refused in a sentence that names it: never a traceback, never a
secret said aloud."""

import asyncio
import re
from itertools import product
from pathlib import Path

import pytest

from postern import settings
from postern.settings import SETTINGS, EnvironmentSetting, SettingError, Settings
from postern.surfaces.cli.run import FAILED, USAGE
from postern.usecases.deliveries.starting import START_TIMEOUT
from postern.wiring import machine, program
from postern.wiring.engines import make_engine

RUBBISH = [
    *(
        "nonsense",
        "-1",
        "0",
        "²",
        "9" * 5000,
        "1e3",
        "http://",
        "http://[",
        "http://a:b/",
        "https://a b/",
        "postgresql://h:abc/x",
    ),
    *(
        ",",
        "a..b",
        "x" * 300,
        "Ünïcode",
        "half a \udcff",
        "two\nlines",
        "\x7f",
        '{"a b": "c"}',
        '{"A": "b\\nc"}',
        "[[[",
        "::::",
        "a@b@c#d",
    ),
]

SHOP = {"POSTERN_SHOPIFY_SHOP": "a.myshopify.com", "POSTERN_SHOPIFY_ACCESS_TOKEN": "shpat_0"}
ENGINES = {
    "http": {"POSTERN_ENGINE": "http", "POSTERN_HTTP_URL": "http://127.0.0.1:9/"},
    "temporal": {"POSTERN_ENGINE": "temporal"},
    "shopify": {"POSTERN_ENGINE": "shopify-flow", **SHOP},
}


@pytest.mark.parametrize("name", [setting.name for setting in SETTINGS])
def test_rubbish_is_taken_or_refused_in_a_sentence(name: str) -> None:
    (setting,) = (setting for setting in SETTINGS if setting.name == name)
    around = ENGINES.get(name.partition("_")[0], {})

    async def tried(settings: Settings) -> None:
        engine = make_engine(settings)
        if engine is not None and settings.engine != "embedded":
            await engine.open()
            await engine.close()

    for text in RUBBISH:
        try:
            asyncio.run(tried(Settings({**around, setting.variable: text})))
        except SettingError as refused:
            message = str(refused)
            assert setting.variable in message or "POSTERN_ENGINE=" in message
            assert len(message) < 400 and "\n" not in message
            assert not setting.secret or len(text) < 4 or text not in message


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *product(
            ["port", "http_timeout", "body_timeout", "history_days", "history_rows", "body_days"],
            ["²", "-1", "9" * 5000, "ten"],
        ),
        *product(["body_timeout", "http_timeout"], ["0"]),
        ("http_timeout", f"{START_TIMEOUT + 1:g}"),
        *product(["trusted_proxies", "outbound_allowed"], ["nonsense", "10.0.0.1, 10.0.0.0/33"]),
        *product(
            ["base_url", "http_url"],
            ["hooks.example.com", "http://", "http://[", "https://a b/", "http://a:b/"],
        ),
        ("base_url", "https://hooks.example.com/?a=1"),
        *product(["database_url"], ["mysql://h/x", "postgresql://h:abc/x"]),
        *product(["client_header"], ["X Y", "Ü", "a:b"]),
        ("host", "a..b"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_opened(name: str, text: str) -> None:
    with pytest.raises(SettingError, match=f"^POSTERN_{name.upper()} must be "):
        Settings({f"POSTERN_{name.upper()}": text})


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("POSTERN_PROT", "POSTERN_PROT is not a setting: did you mean POSTERN_PORT?"),
        ("POSTERN_DATABSE_URL", "POSTERN_DATABSE_URL is not a setting: did you mean POSTERN_DATABASE_URL?"),
        ("POSTERN_APIKEY", "POSTERN_APIKEY is not a setting: did you mean POSTERN_API_KEY?"),
        ("POSTERN_COLOUR", "POSTERN_COLOUR is not a setting; `postern settings` lists them"),
        ("POSTERN_", "POSTERN_ is not a setting; `postern settings` lists them"),
    ],
)
def test_a_misspelt_setting_is_named_with_the_one_that_was_meant(typed: str, said: str) -> None:
    with pytest.raises(SettingError) as refused:
        Settings({typed: "1"})
    assert str(refused.value) == said


@pytest.mark.parametrize("name", ["database_url", "dbos_database_url"])
def test_a_postgres_database_may_be_written_as_those_do_who_rent_them_out(name: str) -> None:
    settings = Settings(
        {f"POSTERN_{name.upper()}": "postgres://user:postgres%3A@db:5432/name?sslmode=require"}
    )
    assert getattr(settings, name) == "postgresql://user:postgres%3A@db:5432/name?sslmode=require"


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///:memory:?cache=shared",
        "sqlite:///file::memory:?uri=true",
        "sqlite:///file:name",
        "sqlite:///name?mode=memory&uri=true",
        "mysql://db/name",
        "db",
    ],
)
def test_a_database_that_ends_with_the_process_or_is_none_is_refused(url: str) -> None:
    with pytest.raises(
        SettingError,
        match="POSTERN_DATABASE_URL must be sqlite:/// with the path of a file and no more, or postgresql:",
    ):
        Settings({"POSTERN_DATABASE_URL": url})


def test_a_secret_in_a_file_that_is_no_text_is_not_quoted(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"\xff\xfe0123456789abcdef")
    with pytest.raises(SettingError, match=r"^POSTERN_ADMIN_KEY_FILE is not a text in UTF-8$"):
        Settings({"POSTERN_ADMIN_KEY_FILE": str(tmp_path / "key")})


def test_a_setting_is_used() -> None:
    read = "".join(file.read_text("utf-8") for file in Path(settings.__file__).parent.rglob("*.py"))
    names = [name for name, one in vars(Settings).items() if isinstance(one, EnvironmentSetting)]
    unused = [name for name in names if not re.search(rf"\b(settings|self)\.{name}\b", read)]
    assert len(names) > 40 and not unused, f"nobody asks for {unused} of settings.py"


def test_a_setting_is_read_as_its_type() -> None:
    settings = Settings(
        {"POSTERN_TRUSTED_PROXIES": "10.0.0.0/8, unix", "POSTERN_BASE_URL": "https://hooks.example.com/in/"}
    )
    assert settings.trusted_proxies.allows("10.1.2.3") and not settings.outbound_allowed
    assert (settings.port, settings.body_days) == (8080, None)
    assert settings.base_url == "https://hooks.example.com/in"
    assert {"POSTERN_PORT", "POSTERN_ADMIN_KEY"} <= {row.variable for row in settings.listed()}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"POSTERN_TRUSTED_PROXIES": "nonsense"}, "POSTERN_TRUSTED_PROXIES"),
        ({"POSTERN_HOST": "no such name"}, "Set POSTERN_HOST"),
        ({"POSTERN_HOST": "192.0.2.1"}, "Set POSTERN_HOST"),
        ({"POSTERN_DATA_DIR": "/dev/null/data"}, "/dev/null/data cannot be used"),
        ({"POSTERN_DATABASE_URL": "sqlite:////dev/null/x/postern.db"}, "/dev/null cannot be used"),
        ({"POSTERN_ENGINE": "embedded", "POSTERN_WORKFLOWS": "/dev/null/flows"}, "/dev/null cannot be used"),
        ({"POSTERN_ENGINE": "temporal", "POSTERN_TEMPORAL_ADDRESS": "::::"}, "POSTERN_ENGINE=temporal"),
        (ENGINES["http"] | {"POSTERN_HTTP_ALLOWED_RANGES": "here"}, "POSTERN_ENGINE=http"),
    ],
)
def test_a_start_that_cannot_be_ends_in_a_sentence(
    given: dict[str, str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(machine, "set_up_logs", lambda _: None)  # it would hold for every test after this one
    usual = {"POSTERN_DATA_DIR": str(tmp_path / "data"), "POSTERN_PORT": "0", "POSTERN_ENGINE": "none"}
    for name, value in (usual | given).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        program.open_local().machine(of_any_owner=True).serve(1, None, False)
    message = capsys.readouterr().err
    # An address that is not there yet may be had a moment later: a supervisor is to try again.
    assert ended.value.code == (FAILED if given.get("POSTERN_HOST") == "192.0.2.1" else USAGE), message
    assert words in message and message.count("\n") == 1


def test_an_admin_key_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(SettingError, match=r"^POSTERN_ADMIN_KEY must have 32 characters or more"):
        Settings({"POSTERN_ADMIN_KEY": "k" * 31})
    assert Settings({"POSTERN_ADMIN_KEY": "k" * 32}).admin_key
