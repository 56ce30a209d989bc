"""HTML as a tree, and what htmx does to it with a response of out-of-band swaps."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree.ElementTree import Element, SubElement

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
SWAP = "hx-swap-oob"


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


def held(page: Element) -> str:
    """What a page says that it holds."""
    parts = (each for each in page.iter() if "data-part" in each.attrib)
    return " ".join(f"{each.get('id')}:{each.get('data-part')}" for each in parts)


def swap(page: Element, response: str) -> None:
    """Change a page as htmx does: https://htmx.org/attributes/hx-swap-oob/.

    A title at the top of a response is that of the page.
    """
    for element in tree(response):
        if element.tag == "title":
            page[:] = [element, *(each for each in page if each.tag != "title")]
            continue
        how, _, targets = element.attrib.pop(SWAP).partition(":")
        for target in targets.split(",") if targets else [f"#{element.get('id')}"]:
            _swap_one(page, how, target.removeprefix("#"), element)


def _swap_one(page: Element, how: str, id: str, element: Element) -> None:
    parent, target = next(
        (parent, child) for parent in page.iter() for child in parent if child.get("id") == id
    )
    i = list(parent).index(target)
    if how == "innerHTML":
        target[:] = list(element)
    elif how == "delete":
        parent.remove(target)
    elif how == "true":
        parent[i] = element
    elif how == "afterend":
        parent[i + 1 : i + 1] = list(element)
    elif how == "beforebegin":
        parent[i:i] = list(element)
    else:
        raise AssertionError(how)


def words(html: bytes) -> str:
    """The words of a page or of a part of it, without what scripts say to htmx."""
    return " ".join(filter(None, (each.text for each in tree(html.decode()).iter())))


def said(response, id: str) -> str:
    """The words in the element with an id, without the spaces between them."""
    element = next(each for each in tree(response.content.decode()).iter() if each.get("id") == id)
    return re.sub(r" (?=[.,;])", "", " ".join(filter(None, (each.text for each in element.iter()))))
