"""What somebody does on each page that acts, while everything goes wrong: it is said where they pressed, what they typed is still
there, and it is done, once, as soon as it can be."""

import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from support.browser import Held, new_context
from support.client import PASSWORD
from support.postgres import PostgresProcess
from support.program import Program
from support.waiting import wait_until
from surfaces.console.conftest import Console, Outside, sign_in


class Deed(NamedTuple):
    path: str
    typed: tuple[str, str]
    """The label of a field, and what is typed into it."""
    button: str
    times: Callable[[Outside, dict[str, str], str], int]
    """How often it was done: by the API, with what there is, and what was typed."""
    opens: str = ""
    """What is pressed first, so that the button is in sight."""
    is_one: bool = False
    """Two people who do it change the same thing."""


def _call(outside: Outside, known: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = outside.api.get(f"invocations/{known['call']}").json
    return found


def _named(path: str) -> Callable[[Outside, dict[str, str], str], int]:
    return lambda outside, _, text: sum(one["name"] == text for one in outside.api.get(path).json["items"])


def _set(name: str) -> Callable[[Outside, dict[str, str], str], int]:
    return lambda outside, known, text: int(outside.api.get(f"webhooks/{known['shop']}").json[name] == text)


DEEDS = {
    "settings": Deed("/webhooks/{shop}/settings", ("Folder", "{}"), "Save", _set("folder"), is_one=True),
    "new webhook": Deed("/webhooks/new/tool", ("Name", "{}"), "Create webhook", _named("webhooks?limit=100")),
    "API key": Deed("/settings", ("Name", "{}"), "Create key", _named("api-keys")),
    "schedule": Deed(
        "/webhooks/{shop}/schedule",
        ("Source URL", "https://shop.example.com/{}"),
        "Save the schedule",
        lambda outside, known, text: int(
            text in str(outside.api.get(f"webhooks/{known['shop']}").json["schedule"])
        ),
        is_one=True,
    ),
    "note": Deed(
        "/calls/{call}",
        ("A note", "{}"),
        "Save the note",
        lambda outside, known, text: sum(one["text"] == text for one in _call(outside, known)["notes"]),
        opens="Add a note",
    ),
    "edited copy": Deed(
        "/calls/{call}/edit",
        ("Body", '{{"n": "{}"}}'),
        "Replay the changed copy",
        lambda outside, known, text: sum(
            text in outside.api.get(f"invocations/{one}").text
            for one in _call(outside, known)["editedReplays"]
        ),
    ),
}


NUMBERS = count(1)


class Robot:
    """Does one deed on one page."""

    def __init__(self, console: Console, deed: Deed, text: str) -> None:
        self.console, self.deed, self.page = console, deed, console.page
        self.text = text
        self.webhook = console.webhook(name=f"For {text}")
        call = console.called(self.webhook["url"], {"n": 1})
        self.known = {"shop": self.webhook["id"], "call": call}
        self.at = deed.path.format(**self.known)
        console.open(self.at)
        # What a page puts in place by itself would move the button away from under the pointer.
        expect(self.page.locator("[hx-trigger^=every]")).to_have_count(0)

    def types(self, page: Page, text: str = "") -> None:
        self.opens(page)
        label, typed = self.deed.typed
        page.get_by_label(label, exact=True).fill(typed.format(text or self.text))

    def opens(self, page: Page) -> None:
        if self.deed.opens and not self.button(page).is_visible():
            page.get_by_text(self.deed.opens).or_(page.get_by_label(self.deed.opens)).first.click()

    def button(self, page: Page) -> Locator:
        return page.locator("main").get_by_role("button", name=self.deed.button, exact=True)

    def times(self, text: str = "") -> int:
        return self.deed.times(self.console, self.known, text or self.text)

    def still_has_it(self, page: Page) -> None:
        label, text = self.deed.typed
        expect(page.get_by_label(label, exact=True)).to_have_value(text.format(self.text))

    def is_done_once(self) -> None:
        wait_until(lambda: self.times() >= 1, what=f"{self.deed.button} to be done")
        assert self.times() == 1


@pytest.fixture
def robot(console: Console, request: pytest.FixtureRequest) -> Iterator[Robot]:
    yield Robot(console, DEEDS[request.param], f"R{next(NUMBERS)}")
    console.notes.check(but="Failed to load resource")


@contextmanager
def full_disk(robot: Robot) -> Iterator[None]:
    """The log of the database is longer than the program's files may be now."""
    console = robot.console
    console.call(robot.webhook["url"], {"filler": "x" * 600_000})
    pid = console.program.process.pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    wait_until(console.program.is_ready, what="room on the disk")


def offline(robot: Robot) -> None:
    robot.page.context.set_offline(True)
    robot.button(robot.page).click()
    expect(robot.page.get_by_text("The gateway did not answer.")).to_be_in_viewport()
    robot.page.context.set_offline(False)


def behind_a_proxy_that_does_not_reach_it(robot: Robot) -> None:
    robot.page.route("**/*", lambda route: route.fulfill(status=502, body="Bad gateway"))
    robot.button(robot.page).click()
    expect(robot.page.get_by_text("The gateway answered 502.")).to_be_in_viewport()
    robot.page.unroute_all()


def with_a_full_disk(robot: Robot) -> None:
    without_its_database(robot, full_disk(robot))


def without_its_database(robot: Robot, away: AbstractContextManager[None]) -> None:
    page = robot.page
    with away:
        robot.button(page).click()
        said = page.get_by_text("The database cannot be used now").locator("visible=true")
        expect(said.first).to_be_in_viewport()
    page.wait_for_load_state()
    back = page.get_by_role("link", name="Back", exact=True)
    if back.is_visible():
        back.click()
        is_given_back(page)


def signed_out(robot: Robot) -> None:
    page = robot.page
    page.context.clear_cookies()
    robot.button(page).click()
    expect(page.get_by_text("Your session ended; nothing was saved.")).to_be_visible()
    expect(page.get_by_text("what you typed is given back")).to_be_visible()
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    is_given_back(page)


def first_text(robot: Robot) -> str:
    return robot.text.replace("R", "First")


def after_another_tab(robot: Robot) -> None:
    """What was done there is not overwritten unseen."""
    first, second = robot.page.context.new_page(), robot.page
    first.goto(robot.console.program.url + robot.at)
    robot.types(first, first_text(robot))
    robot.button(first).click()
    wait_until(lambda: robot.times(first_text(robot)) == 1, what="the first tab's deed")
    first.close()
    if robot.deed.is_one:
        robot.button(second).click()
        said = second.get_by_text("meanwhile, and here it is").locator("visible=true").last
        expect(said).to_contain_text(first_text(robot))
        expect(said).to_be_in_viewport()
        assert robot.times(first_text(robot)) == 1


def is_given_back(page: Page) -> None:
    """The fields are filled, and open where they were closed: what presses them before might close them again."""
    expect(page.get_by_text("What you typed is here again")).to_be_visible()


def pressed_twice_over_a_slow_network(robot: Robot) -> None:
    network = robot.page.context.new_cdp_session(robot.page)
    network.send("Network.enable")
    slow = {"offline": False, "latency": 300, "downloadThroughput": -1, "uploadThroughput": -1}
    network.send("Network.emulateNetworkConditions", slow)
    robot.button(robot.page).dblclick(delay=5)
    robot.is_done_once()
    network.detach()


@pytest.mark.parametrize("robot", DEEDS, indirect=True)
def test_what_goes_wrong_is_said_where_one_pressed_and_in_the_end_it_is_done_once(robot: Robot) -> None:
    robot.types(robot.page)
    for goes_wrong in (
        offline,
        behind_a_proxy_that_does_not_reach_it,
        with_a_full_disk,
        signed_out,
        after_another_tab,
    ):
        goes_wrong(robot)
        robot.opens(robot.page)
        robot.still_has_it(robot.page)
        assert robot.times() == 0, goes_wrong
    pressed_twice_over_a_slow_network(robot)
    assert robot.times(first_text(robot)) == (not robot.deed.is_one)


def test_what_a_page_asks_for_by_itself_takes_nothing_away(console: Console) -> None:
    """Not what was typed into the part that it renews; and where the session has ended, not the form's own answer, which leads to
    the sign-in and tells it that something was typed."""
    robot = Robot(console, DEEDS["note"], f"R{next(NUMBERS)}")
    robot.types(console.page)
    story = f"#story-{robot.known['call']}"
    renew = "at => htmx.ajax('GET', location.pathname, { target: at, select: at, swap: 'outerHTML' })"
    console.page.evaluate(renew, story)
    robot.still_has_it(console.page)
    sent = Held(console.page, "**/notes")
    robot.button(console.page).click()
    wait_until(sent.asked, what="the note to be sent")
    console.page.context.clear_cookies()
    with console.page.expect_response(console.program.url + robot.at):
        console.page.evaluate(renew, story)
    sent.let_one_go()
    expect(console.page.get_by_text("what you typed is given back")).to_be_visible()


@pytest.fixture
def over_postgres(own_postgres: PostgresProcess, browser: Browser, tmp_path: Path) -> Iterator[Console]:
    environment = {"POSTERN_ADMIN_PASSWORD": PASSWORD, "POSTERN_DATABASE_URL": own_postgres.url}
    context = new_context(browser)
    with Program(tmp_path, environment) as program:
        sign_in(context, program)
        yield Console(context.new_page(), program)
    context.close()


def test_postgres_away_is_said_too_and_what_was_typed_is_done_when_it_is_there_again(
    over_postgres: Console, own_postgres: PostgresProcess
) -> None:
    @contextmanager
    def away(robot: Robot) -> Iterator[None]:
        own_postgres.stop()
        yield
        own_postgres.start()
        wait_until(robot.console.program.is_ready, what="the gateway to know Postgres again")

    for deed in (DEEDS["settings"], DEEDS["new webhook"]):
        robot = Robot(over_postgres, deed, f"R{next(NUMBERS)}")
        robot.types(robot.page)
        without_its_database(robot, away(robot))
        robot.still_has_it(robot.page)
        assert robot.times() == 0
        robot.button(robot.page).click()
        robot.is_done_once()
