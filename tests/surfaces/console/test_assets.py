"""Styles are one file, made of those that they are written in; icons are in the page."""

import re

from postern.surfaces.console.assets import FOLDER, SHEETS, STATIC, asset, icon, styles
from postern.surfaces.console.views.webhooks.creation import ANSWERS
from postern.surfaces.console.views.webhooks.listing import ACTIONS


def test_the_styles_are_those_of_every_sheet() -> None:
    sheets = {one.stem: one.read_bytes() for one in (STATIC / "css").iterdir()}
    assert sorted(SHEETS) == sorted(sheets)
    written = b"".join(sheets[name] for name in SHEETS)
    font = asset("vendor/inter.woff2").encode()
    assert written.count(b"../vendor/inter.woff2") == 1
    assert styles() == written.replace(b"../vendor/inter.woff2", font)


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
