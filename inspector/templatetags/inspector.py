"""Small pieces of markup that every template uses."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from django import template
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import Truncator

from chatmemory.explain import Caption, ReceiptLine

if TYPE_CHECKING:
    from inspector.conversation.timeline import Cell

register = template.Library()

SHOWN = 400
RECEIPT_HEAD, RECEIPT_TAIL = 40, 5


@cache
def sprite() -> str:
    return static("inspector/sprite.svg")


@register.simple_tag
@cache
def icon(name: str, css: str = "i") -> SafeString:
    return format_html(
        '<svg class="{}" aria-hidden="true"><use href="{}#i-{}"/></svg>',
        css,
        sprite(),
        name,
    )


@register.simple_tag
@cache
def shape(name: str) -> SafeString:
    """The glyph of a message, its second cue beside the colour."""
    return format_html('<svg aria-hidden="true"><use href="{}#g-{}"/></svg>', sprite(), name)


@register.simple_tag
@cache
def mark(name: str, css: str = "") -> SafeString:
    return format_html('<span class="mark r-{} {}">{}</span>', name, css, shape(name))


@register.simple_tag
def tape_cells(page: Any) -> SafeString:
    """The cells of the tape: hundreds of them, so written here rather than by template nodes."""
    url, find = escape(page.url), escape(page.find_query)
    return mark_safe("".join(_cell(cell, url, find) for cell in page.timeline.cells))  # noqa: S308


def _cell(cell: Cell, url: str, find: str) -> str:
    """Everything but the words is ours."""
    words, drawn = escape(cell.words), shape(cell.glyph) if cell.glyph else ""
    kind = f"r-{cell.glyph}" if cell.glyph else "cell--tick"
    link = f'title="{words}"'
    if not cell.is_draft:
        chosen = f"&amp;msg={cell.seq}" if cell.seq else ""
        href = f"{url}?at={cell.step}{chosen}{find}"
        link += f' href="{href}" hx-get="{href}"'
        link += "" if cell.is_head else ' tabindex="-1"'
    playhead = ""
    if cell.is_head:
        css, name = (" is-sim", "draft") if cell.is_draft else ("", f"{cell.step:,}")
        playhead = f'<span class="playhead{css}"><b>{name}</b></span>'
    return (
        f'<li class="cell {kind} {cell.css}"><a {link}><span class="sr-only">{words}</span>'
        f"{drawn}</a>{playhead}</li>"
    )


@register.simple_tag
def ledger_rows(page: Any, rows: list[Any]) -> SafeString:
    """Rows of the memory pane, written here for the same reason as the cells."""
    url, find = escape(page.url), escape(page.find_query)
    return mark_safe("".join(_ledger_row(row, page, url, find) for row in rows))  # noqa: S308


def _ledger_row(row: Any, page: Any, url: str, find: str) -> str:
    """The fall is the cumulative bar in units of the limit: pale above, strong for this row."""
    pin = icon("pin", "i i--s") if "led--sys" in row.css else ""
    name = "draft" if row.is_draft else f"#{row.seq}"
    href = f"{url}?at={page.at}&amp;msg={row.seq}{find}"
    hit = (
        ""
        if row.is_draft
        else (f'<a class="hit" href="{href}" hx-get="{href}" aria-label="Why? #{row.seq}"></a>')
    )
    mono = " mono" if row.is_code else ""
    width = page.memory_pane.bar_width
    return (
        f'<li class="led r-{row.glyph} {row.css}" data-seq="{row.seq}">{mark(row.glyph)}'
        f'<span class="led__no">{pin}{name}</span><span class="led__cell">'
        f'<span class="led__text{mono}" dir="auto">{shown(row.text, page)}</span></span>'
        f'<svg class="fall" viewBox="0 0 {width} 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="f-track" width="{width}" height="8"/>'
        f'<rect class="f-past" width="{row.past}" height="8"/>'
        f'<rect class="f-this" x="{row.past}" width="{row.this}" height="8"/></svg>'
        f'<span class="led__tok">{row.amount:,}</span>{hit}</li>'
    )


@register.simple_tag
def to(page: Any, at: int | None = None, find: str | None = None, **chosen: int) -> SafeString:
    """The attributes of a link on the page: a real address, and the same for HTMX."""
    href = page.link(page.at if at is None else at, find, **chosen)
    return format_html('href="{}" hx-get="{}"', href, href)


@register.simple_tag
def caption_words(caption: Caption) -> SafeString:
    """A step's sentence, gain and loss set off by colour."""
    gain = format_html(' <span class="in">{}</span>', caption.gain) if caption.gain else ""
    if not caption.loss:
        return format_html("{}{}. {}", caption.event, gain, caption.detail)
    detail = format_html(": {}", caption.detail) if caption.detail else "."
    loss = format_html('<span class="out">{}</span>', caption.loss)
    return format_html("{}{}. {}{}", caption.event, gain, loss, detail)


@register.simple_tag
def verdict_words(page: Any) -> SafeString:
    """What a draft would do, in the composer: `Would evict 2 messages: #30 and #31.`"""
    verdict = page.simulation.verdict
    loss = format_html(" <b>{}</b>: ", verdict.loss) if verdict.loss else ". "
    limit = f"{page.limit:,}" if page.limit else ""
    return format_html(
        '{}{}{}. <span class="sum">{} → {} / {}</span>',
        verdict.event,
        loss,
        verdict.detail.rstrip("."),
        f"{page.simulation.before:,}",
        f"{page.load:,}",
        limit,
    )


@register.filter
def shortened(lines: Sequence[ReceiptLine]) -> Sequence[ReceiptLine]:
    """A sum that fits on a page: of a very long one the beginning and the end."""
    left_out = len(lines) - RECEIPT_HEAD - RECEIPT_TAIL
    if left_out <= 1:
        return lines
    more = lines[RECEIPT_HEAD : RECEIPT_HEAD + left_out]
    amount = sum(line.amount for line in more if line.kind == "minus")
    gap = ReceiptLine(f"… {left_out:,} more lines", amount, "minus")
    return [*lines[:RECEIPT_HEAD], gap, *lines[-RECEIPT_TAIL:]]


@register.filter
def thousands(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


@register.filter
def signed(number: int) -> str:
    """+85, −24."""
    return f"−{-number:,}" if number < 0 else f"+{number:,}"


@register.filter
def shown(text: str, page: Any) -> SafeString:
    """A text cut to what a row shows, with the searched phrase marked; a hit is never cut off."""
    phrase = page.find
    start = text.lower().find(phrase.lower()) if phrase else -1
    if start < 0:
        return format_html("{}", Truncator(text).chars(SHOWN))
    begin = max(0, start - SHOWN // 2)
    end = start + len(phrase)
    head = ("…" if begin else "") + text[begin:start]
    tail = Truncator(text[end:]).chars(SHOWN)
    return format_html("{}<mark>{}</mark>{}", head, text[start:end], tail)


@register.filter
def pretty_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


@register.filter
def ago(moment: datetime) -> str:
    """now, 8 s ago, 2 min ago, 3 h ago, then the date."""
    seconds = int((timezone.now() - moment).total_seconds())
    for limit, unit, words in ((5, 1, "now"), (60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < limit:
            return words if words == "now" else f"{seconds // unit} {words} ago"
    return f"{moment:%-d %b %Y}"
