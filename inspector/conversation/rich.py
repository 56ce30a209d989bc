"""Formats texts for people: the Markdown of an assistant, and the JSON of a tool result."""

from __future__ import annotations

from typing import Any

from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from chatmemory import InvalidMessage, load_json

RENDERED_MAX = 20_000  # characters
FIELDS_MAX = 40
_MARKUP = frozenset("*_`#|[>~-+1")


class _Renderer(RendererHTML):
    """Renders Markdown without headings, which would mix with the headings of the page."""

    def heading_open(self, *_: object) -> str:
        return "<p><b>"

    def heading_close(self, *_: object) -> str:
        return "</b></p>\n"

    def link_open(self, tokens: list[Token], place: int, *rest: Any) -> str:  # not read here
        tokens[place].attrSet("rel", "noopener noreferrer nofollow")
        tokens[place].attrSet("class", "link")
        return self.renderToken(tokens, place, *rest[:2])


# HTML in a text is shown as it was written, and pictures are not loaded.
_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
_MARKDOWN.enable(["table", "strikethrough"]).disable("image")


def from_markdown(text: str) -> SafeString | None:
    """Return a Markdown text as HTML; None if it has no markup, or is too long."""
    if len(text) > RENDERED_MAX or not _MARKUP & set(text):
        return None
    html = _MARKDOWN.render(text)
    plain = html.strip().removeprefix("<p>").removesuffix("</p>")
    return mark_safe(html) if "<" in plain else None  # noqa: S308  (it escapes HTML)


def fields_of(text: str) -> list[tuple[str, str]] | None:
    """Return the names and values of a JSON object as text, such as [("city", "Paris"), ("tags",
    "a, b")] for `{"city": "Paris", "tags": ["a", "b"]}`.

    None in these cases:

    - The text is not a JSON object.
    - The object has no names, or more than 40.
    - A value is an object or list that contains another object or list.
    """
    try:
        found = load_json(text)
    except InvalidMessage:
        return None
    if not isinstance(found, dict) or not 0 < len(found) <= FIELDS_MAX:
        return None
    values = [_in_words(value) for value in found.values()]
    if any(value is None for value in values):
        return None
    return [(str(name), value or "") for name, value in zip(found, values, strict=True)]


def _in_words(value: object) -> str | None:
    """Return a JSON value in words; None if an object or list has further objects or lists
    inside.
    """
    if isinstance(value, dict):
        parts = [(name, _scalar(each)) for name, each in value.items()]
        is_flat = all(each is not None for _, each in parts)
        return ", ".join(f"{name} {each}" for name, each in parts) if is_flat else None
    if isinstance(value, list):
        items = [_scalar(each) for each in value]
        return ", ".join(map(str, items)) if None not in items else None
    return _scalar(value)


def _scalar(value: object) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict | list):
        return None
    return "none" if value is None else str(value)
