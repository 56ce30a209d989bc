"""A page as lines of text: what a reader reads, and what links and forms send.

A block is one line: its tag and id, then the attributes and the text that it has of its own. Links
stand in the text as `[words](address)`, and cells of tables between bars. Left out are styles,
scripts, classes, what pages tell scripts (`data-*`, `hx-*`), the curves and coordinates of drawings
(their words stay), and values that vary: tokens against forgery, digests, packed chats, and the
keys of trials and tokens.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

from tests.inspector.markup import VOID

NOTED = re.compile(
    "action|alt|aria-(checked|current|expanded|invalid|label|pressed|value.*)|checked|disabled|for"
    "|form|formaction|hidden|max|maxlength|method|min|multiple|name|open|placeholder|readonly"
    "|required|role|selected|title|type|value"
)
INLINE = {"a", "b", "code", "em", "i", "kbd", "mark", "small", "span", "strong", "td", "th", "time"}
UNREAD = {"script", "style", "link", "meta"}
WORDLESS = {"div", "span", "dl", "ol", "ul", "table", "thead", "tbody", "svg"}
USUAL = {("type", "submit"), ("type", "button"), ("type", "text")}
VARYING = {"seen", "trial", "chat"}
PLAIN = re.compile(r"[\w./#-]+")
KEYS = re.compile(r"(?<=[?&]trial=)[\w-]+|(?<=[?&]chat=)[\w-]+|(?<=/tokens/)\d+|\b[0-9a-f]{64}\b")


def as_text(html: str, whole: bool = False) -> str:
    """Return the title and the `main` of a page; all of a whole one, and of a fragment."""
    reader = Reader(html)
    titles = [line for line in reader.lines if line.startswith("title ")]
    lines = reader.lines if whole or not reader.main else [*titles, *reader.main]
    return KEYS.sub("…", "".join(f"{line}\n" for line in lines))


class Reader(HTMLParser):
    """The lines of a page; `main` has the lines of the element main."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.main: list[str] = []
        self.head = self.noted = self.text = ""
        self.open: list[tuple[str, str]] = []  # each with what closes it in the text
        self.feed(html)
        self.close()
        self._end_line()

    def handle_starttag(self, tag: str, pairs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in pairs}
        after = ""
        if tag == "br":
            self.text += " "
        elif self._is_inside("svg") and tag not in ("a", "text", "title"):
            pass
        elif tag in INLINE or tag in ("svg", "text"):
            after = self._inline(tag, attributes)
        else:
            self._begin_line(tag, attributes)
        if tag not in VOID:
            self.open.append((tag, after))

    def handle_startendtag(self, tag: str, pairs: list[tuple[str, str | None]]) -> None:
        if not self._is_inside("svg"):
            self.handle_starttag(tag, pairs)

    def handle_endtag(self, tag: str) -> None:
        opened, after = self.open[-1]
        assert opened == tag, f"</{tag}> does not close <{opened}>, after {self.lines[-1:]}"
        self.text += after
        if tag not in INLINE and not self._is_inside("svg"):
            self._end_line()
        self.open.pop()

    def handle_data(self, text: str) -> None:
        if self._is_inside("script") or self._is_inside("style"):
            return
        if not self._is_inside("pre") and not self._is_inside("textarea"):
            self.text += text
            return
        first, *others = text.split("\n")
        self.text += first
        for each in others:
            self._end_line()
            self.text = each

    def _inline(self, tag: str, attributes: dict[str, str]) -> str:
        """Begin an element within a line, and return what ends it."""
        noted = _noted(attributes)
        if tag == "a":
            self.text += "["
            return f"]({attributes.get('href', '')}{noted})"
        if tag in ("td", "th"):
            self.text += " | "
        elif tag == "text":
            return " "
        return f" {{{noted.strip()}}}" if noted else ""

    def _begin_line(self, tag: str, attributes: dict[str, str]) -> None:
        if attributes.get("name") in VARYING:
            attributes["value"] = "…"
        id = f"#{attributes['id']}" if "id" in attributes else ""
        noted = _noted(attributes)
        if tag in WORDLESS and not id and not noted and not self.text.strip():
            return  # the line of the element around it begins with its words
        self._end_line()
        if tag not in UNREAD and attributes.get("name") != "csrfmiddlewaretoken":
            self.head, self.noted = f"{'' if tag in WORDLESS else tag}{id}", noted

    def _end_line(self) -> None:
        text = " ".join(self.text.split()).replace("[ ", "[").replace(" ](", "](")
        if text or self.noted:
            self.lines.append(f"{self.head}{self.noted} {text}".strip())
            if self._is_inside("main"):
                self.main.append(self.lines[-1])
        self.head = self.noted = self.text = ""

    def _is_inside(self, tag: str) -> bool:
        return any(opened == tag for opened, _ in self.open)


def _noted(attributes: dict[str, str]) -> str:
    """Return the attributes that a reader or a form makes use of, by their names."""
    return "".join(
        f" {name}={value if PLAIN.fullmatch(value) else repr(value)}" if value else f" {name}"
        for name, value in sorted(attributes.items())
        if NOTED.fullmatch(name) and (name, value) not in USUAL
    )
