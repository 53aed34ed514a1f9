"""What every page asks for is two files, made of those that they are written in; its icons are in the page."""

import re
from collections import Counter

from postern.surfaces.console.assets import FOLDER, SCRIPTS, SHEETS, STATIC, STYLES, icon, together
from postern.surfaces.console.views.webhooks.creation import ANSWERS
from postern.surfaces.console.views.webhooks.listing import ACTIONS

FROM = re.compile(r'^import .* from "\./(\w+)\.js";$', re.MULTILINE)


def test_the_styles_are_those_of_every_sheet() -> None:
    sheets = {one.stem: one.read_bytes() for one in (STATIC / "css").iterdir()}
    assert sorted(SHEETS) == sorted(sheets)
    assert together(STYLES) == b"".join(sheets[name] for name in SHEETS)


def test_the_scripts_import_nothing_and_give_each_name_once() -> None:
    scripts = together(SCRIPTS).decode()
    assert re.findall(r"^(?:import|export) .*", scripts, re.MULTILINE) == ["export { say, ZONE };"]
    given = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", scripts, re.MULTILINE)
    assert [name for name, times in Counter(given).items() if times > 1] == []
    assert given.index("say") < given.index("marks") < given.index("wanted"), "before it is used"


def test_what_a_page_fetches_later_imports_from_what_it_has() -> None:
    entry = (STATIC / SCRIPTS).read_text()
    fetched = {
        one: (STATIC / "js" / f"{one}.js").read_text() for one in re.findall(r'"\./(\w+)\.js",', entry)
    }
    assert "live" in fetched and {where for one in fetched.values() for where in FROM.findall(one)} == {
        "console"
    }


def test_every_icon_that_is_named_can_be_drawn() -> None:
    named = {symbol for symbol, *_ in ANSWERS.values()} | {symbol for _, symbol in ACTIONS.values()}
    for template in (FOLDER / "templates").rglob("*.html"):
        text = template.read_text()
        for asked in re.findall(r"\bicon\(([^)]*)", text):
            shown = asked.split(", '")[0] if "get(" not in asked else ""  # what it looks like is no name
            named.update(re.findall(r"(?:^|if |else )'(\w+)'", re.sub(r"== '\w+'", "", shown)))
        named.update(re.findall(r"\bnote\('\w+', '(\w+)'\)", text))
        named.update(re.findall(r"\bentry\('[^']+', '(\w+)'", text))
    assert {"webhook", "trash", "warn", "check", "clock"} <= named
    for name in named:
        assert icon(name).startswith('<svg class="icon" aria-hidden="true" viewBox="0 0 '), name


def test_what_has_copied_shows_the_icon_for_it() -> None:
    (drawn,) = re.findall(r"const CHECK = '(.*)';", (STATIC / "js" / "copy.js").read_text())
    assert f">{drawn}<" in icon("check")
