"""The documentation is complete, true to the code, and its commands run."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from reference import FOLDER, PAGES, commands, use_cases
from screenshots import DARK, PHONE
from screenshots import PAGES as SHOTS

from postern import presets
from postern.core.problems import PROBLEMS
from postern.settings import OF_COMMANDS, SETTINGS
from support.client import admin_of, call, made
from support.program import StartProgram
from support.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent
PROSE = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_says_what_the_code_says(name: str) -> None:
    assert (FOLDER / name).read_text() == PAGES[name](), "run `make reference`"


def test_no_reference_page_is_left_over() -> None:
    there = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()}
    assert there == set(PAGES)


DOCUMENTED: dict[str, Callable[[], Iterator[str]]] = {
    "settings.md": lambda: (f"| `{one.variable}` |" for one in SETTINGS),
    "problems.md": lambda: (f"| `{code}` |" for code in PROBLEMS),
    "senders.md": lambda: (f"](senders/{name}.md) | `{name}` |" for name in presets.names()),
    "commands.md": lambda: (f"## postern {' '.join(words)}\n" for words, _ in commands()),
    "use-cases.md": lambda: (f"| `{name}` |" for name, _, _ in use_cases()),
}


@pytest.mark.parametrize("page", DOCUMENTED)
def test_everything_that_there_is_of_a_kind_is_on_its_page(page: str) -> None:
    text = (FOLDER / page).read_text()
    assert [name for name in DOCUMENTED[page]() if name not in text] == [], "run `make reference`"


def test_every_command_and_every_use_case_says_what_it_does() -> None:
    assert [words for words, command in commands() if not command.help] == []
    assert [name for name, _, purpose in use_cases() if not purpose] == []


def test_every_page_of_the_console_has_its_picture() -> None:
    shown = set(re.findall(r"\(console/([\w-]+)\.png\)", (ROOT / "docs" / "console.md").read_text()))
    there = {path.stem for path in (ROOT / "docs" / "console").iterdir()}
    assert shown == there, "run `make screenshots`, or show it in docs/console.md"
    taken = {name for name, _, _ in SHOTS} | {f"{name}-dark" for name in DARK}
    assert shown == taken | {f"{name}-phone" for name in PHONE} | {"sign-in"}


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_example_answers_its_own_webhook_and_hears_no_other(start_program: StartProgram) -> None:
    example = {"POSTERN_WORKFLOWS": str(ROOT / "src/postern/workflows/example"), "POSTERN_EXAMPLE": "on"}
    program = start_program(**example)
    # It serves before it has said everything, and says it line by line.
    wait_until(lambda: " -d '" in program.output(), what="the whole command to be printed")
    curl = program.output().partition("Try it:")[2].partition(" -d '")[0]
    headers = dict(re.findall(r"-H '([\w-]+): ([^']+)'", curl))
    address = re.search(r"http://\S+", curl)
    assert address is not None, program.output()
    api = admin_of(program)
    # The caller waits 25 seconds for the answer: not also for an engine that comes up on a busy machine.
    wait_until(lambda: api.get("workflows").json, what="the engine to know the workflow")
    reply = call(address[0], {"orderNumber": "1001"}, **headers)
    assert reply.status == 200, f"{reply.text}\n{program.output()}"
    assert reply.json["orders"][0]["name"] == "#1001"
    wait_until(
        lambda: api.get("invocations").json["items"][0].get("workflows") == ["order_lookup"],
        what="the history to name the workflow",
    )
    other = f"invocations/{call(made(program)['url']).json['invocationId']}"
    wait_until(lambda: api.get(other).json["status"] == "started", what="the call to be started")
    assert api.get(other).json["nobodyListens"] is True


DEPLOYMENT = [
    ROOT / "Makefile",
    ROOT / "Dockerfile",
    *sorted(ROOT.glob("compose*.yaml")),
    *sorted((ROOT / "deploy").iterdir()),
]


@pytest.mark.parametrize("file", [*PROSE, *DEPLOYMENT], ids=lambda file: str(file.relative_to(ROOT)))
def test_only_settings_that_exist_are_spoken_of(file: Path) -> None:
    known = {one.variable for one in SETTINGS} | {f"{one.variable}_FILE" for one in SETTINGS if one.secret}
    known |= OF_COMMANDS
    assert set(re.findall(r"\bPOSTERN_[A-Z_]+[A-Z]\b", file.read_text())) - known == set()


DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
NAME_FILES = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md", *DECISIONS]


@pytest.mark.parametrize("page", NAME_FILES, ids=lambda page: page.name)
def test_a_file_that_is_named_is_there(page: Path) -> None:
    """By its whole path, or by the end of it."""
    files = [file.relative_to(ROOT).as_posix() for file in ROOT.glob("[a-z]*/**/*.*")] + [
        file.name for file in ROOT.iterdir()
    ]
    named = re.findall(r"`([\w/.-]+\.(?:py|toml|html|js|md|sh))`", page.read_text("utf-8"))
    assert named
    assert [one for one in named if not any(f"/{file}".endswith(f"/{one}") for file in files)] == []


@pytest.mark.parametrize(
    ("page", "words"), [("CHANGELOG.md", 1_425), ("docs/glossary.md", 1_050), ("docs/decisions", 14_500)]
)
def test_pages_that_grow_by_themselves_are_kept_short(page: str, words: int) -> None:
    """A line that is added takes the place of another."""
    files = [ROOT / page] if page.endswith(".md") else [*(ROOT / page).iterdir()]
    assert sum(len(file.read_text("utf-8").split()) for file in files) <= words


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.name)
def test_a_decision_is_half_a_page_in_the_list_and_says_what_keeps_it(page: Path) -> None:
    text = page.read_text("utf-8")
    title = text.partition("\n")[0].removeprefix("# ")
    assert f"| [{page.name[:4]}]({page.name}) | {title} |" in (page.parent / "README.md").read_text("utf-8")
    assert len(text.split()) <= 450, "measurements belong to bench/results"
    assert "\nKept by: " in text and "\nWhat would change it: " in text
