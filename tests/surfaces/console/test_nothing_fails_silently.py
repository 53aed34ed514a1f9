"""What somebody does on each page that acts, while everything goes wrong: it is said where they pressed, what they typed is still
there, and it is done, once, as soon as it can be."""

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Locator, Page, expect

from support.client import PASSWORD
from support.waiting import wait_until
from surfaces.console.conftest import Console, Outside


class Deed(NamedTuple):
    path: str
    typed: tuple[str, str]
    """The label of a field, and what is typed into it."""
    button: str
    times: Callable[[Outside, dict[str, str], str], int]
    """How often it was done: by the API, with what there is, and what was typed."""
    opens: str = ""
    """What is pressed first, so that the button is in sight."""


def _call(outside: Outside, known: dict[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = outside.api.get(f"invocations/{known['call']}").json
    return found


def _named(path: str) -> Callable[[Outside, dict[str, str], str], int]:
    return lambda outside, _, text: sum(one["name"] == text for one in outside.api.get(path).json["items"])


def _set(name: str) -> Callable[[Outside, dict[str, str], str], int]:
    return lambda outside, known, text: int(outside.api.get(f"webhooks/{known['shop']}").json[name] == text)


DEEDS = {
    "settings": Deed("/webhooks/{shop}/settings", ("Folder", "{}"), "Save", _set("folder")),
    "new webhook": Deed("/webhooks/new/tool", ("Name", "{}"), "Create webhook", _named("webhooks?limit=100")),
    "API key": Deed("/settings", ("Name", "{}"), "Create key", _named("api-keys")),
    "schedule": Deed(
        "/webhooks/{shop}/schedule",
        ("Source URL", "https://shop.example.com/{}"),
        "Save the schedule",
        lambda outside, known, text: int(
            text in str(outside.api.get(f"webhooks/{known['shop']}").json["schedule"])
        ),
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
        console.open(deed.path.format(**self.known))

    def types(self, page: Page) -> None:
        self.opens(page)
        label, text = self.deed.typed
        page.get_by_label(label, exact=True).fill(text.format(self.text))

    def opens(self, page: Page) -> None:
        if self.deed.opens and not self.button(page).is_visible():
            page.get_by_text(self.deed.opens).or_(page.get_by_label(self.deed.opens)).first.click()

    def button(self, page: Page) -> Locator:
        return page.locator("main").get_by_role("button", name=self.deed.button, exact=True)

    def times(self) -> int:
        return self.deed.times(self.console, self.known, self.text)

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
    page = robot.page
    with full_disk(robot):
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
    for goes_wrong in (offline, behind_a_proxy_that_does_not_reach_it, with_a_full_disk, signed_out):
        goes_wrong(robot)
        robot.opens(robot.page)
        robot.still_has_it(robot.page)
        assert robot.times() == 0, goes_wrong
    pressed_twice_over_a_slow_network(robot)
