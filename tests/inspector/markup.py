"""HTML as a tree."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree.ElementTree import Element, SubElement

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("page")]

    def handle_starttag(self, tag, attributes) -> None:
        made = SubElement(self.open[-1], tag, {name: value or "" for name, value in attributes})
        if tag not in VOID:
            self.open.append(made)

    def handle_startendtag(self, tag, attributes) -> None:
        SubElement(self.open[-1], tag, {name: value or "" for name, value in attributes})

    def handle_endtag(self, tag) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> closes nothing"

    def handle_data(self, text) -> None:
        if text.strip():
            SubElement(self.open[-1], "text").text = " ".join(text.split())


def tree(html: str) -> Element:
    """The elements of a page, with texts as elements, and without blank ones."""
    builder = _Builder()
    builder.feed(html)
    builder.close()
    return builder.open[0]


def roots(response) -> list[tuple[str, str | None]]:
    """The names and ids of the elements at the top of a response."""
    return [(each.tag, each.get("id")) for each in tree(response.content.decode())]


def words(html: bytes) -> str:
    """The words of a page or of a part of it, without what scripts say to htmx."""
    return " ".join(filter(None, (each.text for each in tree(html.decode()).iter())))


def said(response, id: str) -> str:
    """The words in the element with an id, without the spaces between them."""
    element = next(each for each in tree(response.content.decode()).iter() if each.get("id") == id)
    return re.sub(r" (?=[.,;])", "", " ".join(filter(None, (each.text for each in element.iter()))))
