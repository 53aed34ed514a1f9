"""A call's page: what was sent in every view, to be searched, copied and taken along."""

import base64
import json
import re

import pytest
from playwright.sync_api import expect

from support.browser import Held
from support.waiting import wait_until
from surfaces.console.conftest import Console, Outside, Plain
from surfaces.console.plain import words

BODY = b'{"order": {"number": 1001,\t"total": 10.00},\r\n "who": {"e.mail": "ada@example.com"}, "note": "\xe2\x80\xaehidden"}'


@pytest.fixture(scope="module")
def calls(outside: Outside) -> dict[str, str]:
    url = outside.webhook(name="Looked at", fieldMapping={"fieldOne": "order.number"})["url"]

    def call(body: bytes, kind: str) -> str:
        return outside.called(url, body, Content_Type=kind)

    query = "?source=shop&token=abc&x=%C3%A9"
    large = {"items": [{"sku": f"S-{number}", "name": "x" * 60} for number in range(10_000)]}
    return {
        "json": outside.called(url + query, BODY, X_Api_Key="the key", X_Note="<b>"),
        "large": outside.called(url, large),
        "form": call(b"a=1&b=two+words", "application/x-www-form-urlencoded"),
        "xml": call(b"<a>\t<script>alert(1)</script></a>", "application/xml"),
        "binary": call(bytes(range(256)) * 9, "image/png"),
        "page": call(b"<html><script>document.title='owned'</script></html>", "text/html"),
    }


def test_a_call_is_told_in_few_words(console: Console, calls: dict[str, str]) -> None:
    """Ordinary and rejected ones, the head of their list, and what a replay of them asks: more grows slowly, and unseen."""
    shop = console.shop("Told", fieldMapping={"fieldOne": "id"})
    _, wrong = console.sold(shop, b'{"id": 1042}', "typo")
    console.page.set_viewport_size({"width": 1440, "height": 900})
    for call, most in ((calls["json"], (70, 10)), (wrong, (110, 12))):
        console.open(f"/calls/{call}")
        words, controls = console.said()
        assert words <= most[0] and controls <= most[1], (words, controls)
        assert console.page.evaluate("document.documentElement.scrollHeight") <= 900, "it is one screen"
    console.open(f"/calls/{calls['json']}")
    expect(console.page.locator("ol.trace")).to_contain_text(re.compile(r"checks passed in [\d.<]+ ms"))
    console.open("/calls")
    expect(console.page.locator(".counting")).to_contain_text("calls")
    words, controls = console.said(but="#calls")
    assert words <= 20 and controls <= 8, (words, controls)
    console.click("View")
    console.click("Replay all of these…")
    expect(console.page.get_by_role("heading", name="Replay ")).to_be_visible()
    words, controls = console.said()
    assert words <= 90 and controls <= 7, (words, controls)


def test_raw_marks_what_nobody_sees_and_is_copied_as_it_came(console: Console, calls: dict[str, str]) -> None:
    console.open(f"/calls/{calls['json']}")
    console.click("Raw", "link")
    code = console.page.locator(".bytes code")
    expect(code.locator("i.t")).to_have_count(1)
    expect(code.locator("i.r")).to_have_count(1)
    expect(code.locator("b.m")).to_have_attribute("data-m", "U+202E")
    text = code.evaluate("one => one.textContent")
    assert text == BODY.decode().replace("\u202e", "")
    assert console.page.locator(".bytes + [data-copy]").get_attribute("data-copy") == BODY.decode()
    assert console.violations() == []


def test_a_value_is_found_its_way_opened_and_its_path_copied(
    console: Console, clipboard: None, calls: dict[str, str]
) -> None:
    console.open(f"/calls/{calls['json']}")
    search, typed = Held(console.page, "**/sent?*"), console.page.get_by_label("Search in the body")
    typed.press_sequentially("EXAM")
    wait_until(search.asked)
    typed.press_sequentially("PLE")
    for _ in range(2):  # it is asked before the last letters are typed, and with them
        search.let_one_go()
    expect(console.page.get_by_text("1 hit", exact=True)).to_be_visible()
    expect(console.page.locator(".tree mark")).to_have_text("example")
    expect(console.page.get_by_label("Search in the body")).to_be_focused()
    console.page.locator(".tree .leaf", has_text="ada@").click()
    console.click("Copy path")
    assert console.page.evaluate("navigator.clipboard.readText()") == "who.e\\.mail"
    found = console.api.get(f"invocations/{calls['json']}/preview?fieldTwo=who.e%5C.mail").json
    assert found["fieldTwo"] == "ada@example.com", "and a mapping takes it"


def test_a_body_is_edited_indented_and_keeps_its_bytes_if_not(plain: Plain, calls: dict[str, str]) -> None:
    def replayed() -> bytes:
        plain.press("Replay the changed copy")
        call = plain.path.partition("?")[0].rpartition("/")[2]
        return base64.b64decode(plain.api.get(f"invocations/{call}/request").json["bodyBase64"])

    plain.open(f"/calls/{calls['json']}/edit")
    assert (plain.field("Body").text or "").lstrip("\n").startswith('{\n  "')
    plain.fill("Field two", "by hand")
    assert replayed() == BODY
    plain.open(f"/calls/{calls['json']}/edit")
    plain.fill("Body", '{"n": 2}')
    assert replayed() == b'{"n": 2}'


def test_a_view_stays_when_the_story_is_shown_again(console: Console, calls: dict[str, str]) -> None:
    """As a page does each second while a start is under way."""
    console.open(f"/calls/{calls['json']}")
    console.click("Headers", "link")
    expect(console.page.locator(".pairs")).to_be_visible()
    story = f"#story-{calls['json']}"
    console.page.evaluate("story => document.querySelector(story).dataset.old = 'yes'", story)
    again = f"htmx.ajax('GET', '/calls/{calls['json']}', {{target: '{story}', select: '{story}', swap: 'outerHTML'}})"
    console.page.evaluate(again)
    expect(console.page.locator(f"{story}[data-old]")).to_have_count(0)
    expect(console.page.locator(".pairs")).to_be_visible()
    expect(console.page.locator(".segments [aria-current]").first).to_have_text("Headers")


def test_a_large_body_is_cut_in_true_words_and_every_part_of_it_is_reached(
    console: Console, calls: dict[str, str]
) -> None:
    console.open(f"/calls/{calls['large']}")
    assert len(console.page.content()) < 120_000
    console.page.locator(".tree summary", has_text="items").click()
    for _ in range(2):
        console.page.get_by_role("link", name=re.compile(r"9,\d\d\d more")).click()
    expect(console.page.locator(".tree summary").first).to_contain_text("10,000 items")
    expect(console.page.locator(".tree")).not_to_contain_text("S-0")
    console.page.get_by_label("Search in the body").fill("s-9999")
    expect(console.page.get_by_text("1 hit", exact=True)).to_be_visible()
    expect(console.page.locator(".tree")).to_contain_text("S-9999")
    console.click("Raw", "link")
    said = re.compile(r"The first [\d.]+ KiB of \d+\.\d KiB: the download has")
    expect(console.page.get_by_text(said)).to_be_visible()


def test_other_bodies_have_views_of_their_own(console: Console, calls: dict[str, str]) -> None:
    for kind, views, text in (
        ("form", ["Values", "Form", "Raw", "Headers"], "two words"),
        ("xml", ["Raw", "Headers"], "<script>alert(1)</script>"),
        ("binary", ["Bytes", "Headers"], "00 01 02 03"),
        ("page", ["Raw", "Headers"], "document.title='owned'"),
    ):
        console.open(f"/calls/{calls[kind]}")
        parts = console.page.get_by_role("navigation", name="Part of the call").locator("a")
        assert parts.all_inner_texts() == views
        if "Form" in views:
            console.click("Form", "link")
        expect(console.page.locator(".sent")).to_contain_text(text)
        assert console.page.title() != "owned" and console.page.locator("main script").count() == 0
        assert kind not in ("form", "binary") or console.violations() == []


def test_headers_and_query_are_tables_with_secrets_masked(plain: Plain, calls: dict[str, str]) -> None:
    plain.open(f"/calls/{calls['json']}?show=headers")
    told = [words(row) for row in plain.root.iter("tr")]
    plain.follow("Query")
    told += [words(row) for row in plain.root.iter("tr")]
    for row in ("x-api-key masked", "x-note <b>", "x é", "token ***"):
        assert any(one.startswith(row) for one in told), (row, told)


def test_the_call_is_copied_as_what_the_api_writes(
    console: Console, clipboard: None, calls: dict[str, str]
) -> None:
    for title in ("curl", "Python"):
        console.open(f"/calls/{calls['json']}")
        console.click("More actions")
        console.page.locator(".menu:popover-open").get_by_text(f"Copy as {title}", exact=True).click()
        expect(console.page.locator("#announced")).to_have_text("Copied")
        copied = console.page.evaluate("navigator.clipboard.readText()")
        asked = f"invocations/{calls['json']}/code?language={title.lower()}"
        assert copied == console.api.get(asked).text
        assert "the key" not in copied and "YOUR_X_API_KEY" in copied


def test_what_is_downloaded_is_every_byte_and_never_a_page(console: Console, calls: dict[str, str]) -> None:
    console.open(f"/calls/{calls['page']}")
    console.click("More actions")
    with console.page.expect_download() as waited:
        console.page.get_by_role("link", name=re.compile("Body, ")).click()
    assert waited.value.suggested_filename == f"body-{calls['page'][-8:]}.xml"
    assert waited.value.path().read_bytes() == b"<html><script>document.title='owned'</script></html>"
    for path in ("body", "call.json", "code/curl"):
        answer = console.page.request.get(f"{console.program.url}/calls/{calls['page']}/{path}")
        assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'"), path
        assert answer.headers["x-content-type-options"] == "nosniff"
        kinds = {"body": "application/octet-stream", "call.json": "application/json"}
        assert answer.headers["content-type"].startswith(kinds.get(path, "text/plain"))
        assert ("attachment" in answer.headers.get("content-disposition", "")) == (path != "code/curl")
    whole = console.page.request.get(f"{console.program.url}/calls/{calls['json']}/call.json").json()
    assert whole["id"] == calls["json"] and whole["trace"] and "the key" not in json.dumps(whole)
    assert console.page.request.get(f"{console.program.url}/calls/{calls['json']}/code/perl").status == 404


def test_every_view_works_without_javascript(plain: Plain, calls: dict[str, str]) -> None:
    plain.open(f"/calls/{calls['json']}")
    for title in ("Raw", "Pretty", "Headers", "Query", "Body"):
        plain.follow(title)
        assert plain.text(".//nav[@aria-label='Part of the call']//a[@aria-current]") == title
    plain.fill("Search in the body", "ada")
    assert "1 hit" in plain.send(plain.form_of(plain.field("Search in the body")))
    assert "http.client" in plain.visitor.get(f"/calls/{calls['json']}/code/python").text


def test_a_call_fits_a_phone(console: Console, calls: dict[str, str]) -> None:
    console.page.set_viewport_size({"width": 360, "height": 740})
    for show in ("tree", "raw", "pretty", "headers", "query"):
        console.open(f"/calls/{calls['json']}?show={show}")
        console.fits(show)
    console.open(f"/calls/{calls['binary']}")
    console.fits("a dump")
