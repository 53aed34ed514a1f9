"""The console as a browser without scripts has it: a page is read, its links are followed and its forms sent. For tests of what
the gateway writes into a page; in Chromium each of these takes many times as long."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin, urlsplit
from xml.etree.ElementTree import Element, SubElement

from support.client import Client

ALONE = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
"""They have no end."""

APART = {"dd", "div", "dt", "li", "p", "td", "th"}
"""Their words do not touch those beside them."""


class Tree(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.root = Element("document")
        self._open = [self.root]
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        one = SubElement(self._open[-1], tag, {name: value or "" for name, value in attrs})
        if tag not in ALONE:
            self._open.append(one)

    def handle_endtag(self, tag: str) -> None:
        if tag in (one.tag for one in self._open):
            while self._open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        here = self._open[-1]
        if len(here):
            here[-1].tail = (here[-1].tail or "") + data
        else:
            here.text = (here.text or "") + data


def words(one: Element) -> str:
    """What is to be read there: not what is hidden until something is pressed."""

    def parts(one: Element) -> Iterator[str]:
        if one.tag in APART:
            yield " "
        if one.tag not in ("script", "style", "template") and not {"hidden", "popover"} & one.attrib.keys():
            yield one.text or ""
            for child in one:
                yield from parts(child)
                yield (" " if child.tag in APART else "") + (child.tail or "")

    return re.sub(r"\s+", " ", "".join(parts(one))).strip()


class Pages:
    """One after the other, as somebody sees them whose requests ``visitor`` makes."""

    visitor: Client

    def open(self, path: str, form: list[tuple[str, str]] | None = None, status: int = 200) -> str:
        """The words of the page to which it leads."""
        html, kind = {"Accept": "text/html"}, "application/x-www-form-urlencoded"
        if form is None:
            reply = self.visitor.get(path, **html)
        else:
            reply = self.visitor.post(path, urlencode(form).encode(), Content_Type=kind, **html)
        while reply.status == 303:
            path = urljoin(path, reply.headers["location"]).partition("#")[0]
            reply = self.visitor.get(path, **html)
        assert reply.status == status, (path, reply.status, reply.text)
        self.path, self.html, self.root = path, reply.text, Tree(reply.text).root
        self._above = {child: one for one in self.root.iter() for child in one}
        return self.text()

    def text(self, xpath: str = ".//main") -> str:
        return " ".join(words(one) for one in self.root.iterfind(xpath))

    def count(self, xpath: str) -> int:
        return len(self.root.findall(xpath))

    def _around(self, one: Element) -> Iterator[Element]:
        while one in self._above:
            one = self._above[one]
            yield one

    def named(self, name: str, *tags: str) -> list[Element]:
        """What is called so: by its own words, by a name that only those hear who do not see, or by its label, which may go on."""

        def is_called(one: Element) -> bool:
            labels = [above for above in self._around(one) if above.tag == "label"]
            labels += self.root.findall(f".//label[@for='{one.get('id')}']")
            own = words(one) if one.tag in ("a", "button") else None
            return name in (one.get("aria-label"), own) or any(
                words(each).startswith(name) for each in labels
            )

        return [one for one in self.root.iter() if one.tag in tags and is_called(one)]

    def field(self, label: str) -> Element:
        return self.named(label, "input", "select", "textarea")[0]

    def fill(self, label: str, text: str) -> None:
        field = self.field(label)
        if field.tag == "textarea":
            field.text = text
        elif field.tag == "select":
            for one in field.iter("option"):
                one.attrib.pop("selected", None)
                if text in (one.get("value"), words(one)):
                    one.set("selected", "")
        else:
            field.set("value", text)

    def tick(self, label: str) -> None:
        field = self.field(label)
        for one in self.root.iterfind(f".//input[@name='{field.get('name')}']"):
            if one.get("type") == "radio":
                one.attrib.pop("checked", None)
        field.set("checked", "")

    def follow(self, name: str) -> str:
        address = self.named(name, "a")[0].attrib["href"]
        return self.open(urljoin(self.path, address).partition("#")[0])

    def press(self, name: str, status: int = 200) -> str:
        """Sends the form of the first button that is called so, as it is filled in; one that only opens a dialog says its words."""
        button = self.named(name, "button")[0]
        if "commandfor" in button.attrib:
            return self.text(f".//dialog[@id='{button.attrib['commandfor']}']")
        return self.send(self.form_of(button), button, status)

    def form_of(self, one: Element) -> Element:
        form = self.root.find(f".//form[@id='{one.get('form')}']")
        return form if form is not None else next(each for each in self._around(one) if each.tag == "form")

    def send(self, form: Element, button: Element | None = None, status: int = 200) -> str:
        pairs = [
            pair
            for one in self.root.iter()
            if (form in self._around(one) and "form" not in one.attrib)
            or form.get("id") == one.get("form", "")
            for pair in self._sent(one)
        ]
        pressed = button if button is not None else Element("button")
        if "name" in pressed.attrib:
            pairs.append((pressed.attrib["name"], pressed.get("value", "")))
        action = urljoin(self.path, pressed.get("formaction") or form.get("action") or self.path)
        if form.get("method", "get").lower() == "post":
            return self.open(action, pairs, status)
        return self.open(urlsplit(action).path + "?" + urlencode(pairs), status=status)

    def _sent(self, one: Element) -> list[tuple[str, str]]:
        """By a field, as it is."""
        name, kind = one.get("name"), one.get("type", "")
        if not name or any("disabled" in each.attrib for each in (one, *self._around(one))):
            return []
        if one.tag == "textarea":
            return [(name, (one.text or "").removeprefix("\n"))]
        if one.tag == "select":
            options = list(one.iter("option"))
            chosen = [each for each in options if "selected" in each.attrib] or options[:1]
            return [(name, each.get("value", words(each))) for each in chosen]
        if one.tag != "input" or (kind in ("checkbox", "radio") and "checked" not in one.attrib):
            return []
        return [(name, one.get("value", "on" if kind in ("checkbox", "radio") else ""))]
