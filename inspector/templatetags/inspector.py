"""Tags and filters of templates: icons, links, and words for numbers and times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from functools import cache, lru_cache
from html import escape
from operator import attrgetter
from typing import Any

from django import template
from django.conf import settings
from django.template import Context
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import get_script_prefix, get_urlconf
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from chatmemory.explain.receipts import shortened
from chatmemory.explain.wording import counted, decapitalized, policy_words, sentence
from chatmemory.flags import flag_named
from chatmemory.messages.texts import named
from chatmemory.patterns import declared_pattern
from chatmemory.reading.feed import microseconds
from inspector.conf import inspector_configuration
from inspector.conversation import history
from inspector.conversation.links import chosen
from inspector.display import switched_on, theme_of
from inspector.shell.menu import menu_of
from inspector.shell.room import Fragment
from inspector.shell.rooms import rooms_on
from inspector.shell.times import is_today, written

register = template.Library()
ShownPage = Any  # also a query, or a row: a template uses each that has the attributes
ENDS_TAIL = 8  # characters
register.filter("moment", microseconds)
for _filter in (
    decapitalized,
    counted,
    named,
    policy_words,
    sentence,
    shortened,
    is_today,
):
    register.filter(_filter)


@register.simple_tag
def flag_words(name: str) -> str:
    """Return the words for a flag (a reason why conversations need attention), for use within a
    line.
    """
    return flag_named(name).words.lower()


_ESCAPED = declared_pattern(r"[&<>\"']")
_GAPS = {"href": "\0href", "text": "\0text"}  # no text that is stored has NUL
_LINK = 'href="{0}" hx-get="{0}"'


def _drawn(template_name: str, **context: object) -> SafeString:
    """A small template's markup, without the final line break."""
    context["sprite"] = static("inspector/sprite.svg")
    markup = render_to_string(f"inspector/shared/{template_name}", context)
    return mark_safe(markup.removesuffix("\n"))  # noqa: S308


@register.simple_tag
@cache
def icon(name: str, css: str = "i") -> SafeString:
    """Return the markup of an icon. Icons are cached, because a page draws hundreds of icons of a
    few kinds.
    """
    return _drawn("_icon.html", name=name, css=css)


@register.simple_tag
@cache
def shape(name: str) -> SafeString:
    """Return the markup of the glyph for a kind of message, by which the kind is recognized without
    its colour.
    """
    return _drawn("_shape.html", name=name)


# What differs from reader to reader: the token of their forms, and the address of the page
_OF_READER = {"csrf_token": "\0csrf", "here": "\0here"}


@register.simple_tag(takes_context=True)
def drawn(context: Context, template_name: str, **values: object) -> SafeString:
    """Return the markup of a template. The template sees `values`, and for the reader `csrf_token`
    and `here`, the URL of the page.

    Markup is cached by `values`. So the values may not have words of messages, which would stay in
    the cache after an erasure.
    """
    request = getattr(context, "request", None)
    own = {} if request is None else {"here": request.get_full_path()}
    if "csrf_token" in context:
        own["csrf_token"] = context["csrf_token"]
    site = get_script_prefix(), get_urlconf() or settings.ROOT_URLCONF
    markup = drawn_once(template_name, tuple(values.items()), tuple(own), site)
    for name, value in own.items():
        if (gap := _OF_READER[name]) in markup:  # a token that is read sets a cookie
            markup = markup.replace(gap, escape(str(value)))
    return SafeString(markup)


@lru_cache(maxsize=256)
def drawn_once(
    template_name: str, values: tuple[tuple[str, object], ...], gaps: tuple[str, ...], site: object
) -> str:
    """Return the cached markup of a template, with gaps for what differs from reader to reader:
    `gaps` are their names. `site` is the part of the cache's key that decides the URLs of pages.
    """
    return render_to_string(template_name, {**dict(values), **{n: _OF_READER[n] for n in gaps}})


@register.filter
def fields(rows: Iterable[object]) -> list[dict[str, object]]:
    """Return each row as a dictionary of its fields. Templates read dictionaries faster than
    objects, because they look up a key before an attribute.
    """
    return [vars(row) for row in rows]


@register.simple_tag
def drawn_rows(template_name: str, rows: Sequence[ShownPage], between: str = "") -> SafeString:
    """Return the markup of many rows of one class, with `between` between two rows. The class
    attribute `drawn` names the fields that the template of a row gets. The template also gets
    `text` and `href` if the row has them.

    Rows are cached, except for rows with words of a message, which would stay in the cache after an
    erasure. The class attribute `has_words` names the fields that may have such words.
    """
    if not rows:
        return SafeString("")
    names, private = rows[0].drawn, getattr(rows[0], "has_words", ())
    drawn = [
        (drawn_row.__wrapped__ if any(getattr(row, name) for name in private) else drawn_row)(
            template_name, names, values, tuple(map(type, values))
        )
        for row, values in zip(rows, map(attrgetter(*names), rows), strict=True)
    ]
    for name, gap in _GAPS.items():
        if hasattr(rows[0], name):
            pairs = zip(drawn, map(attrgetter(name), rows), strict=True)
            drawn = [markup.replace(gap, _escaped(value)) for markup, value in pairs]
    return SafeString(between.join(drawn))


def _escaped(text: str) -> str:
    """A text as markup. A page has hundreds, and `conditional_escape` asks each for more."""
    is_markup = isinstance(text, SafeString) or not _ESCAPED.search(text)
    return text if is_markup else escape(text)


@lru_cache(maxsize=2_000)
def drawn_row(
    template_name: str, names: tuple[str, ...], values: tuple[object, ...], types: tuple[type, ...]
) -> str:
    """Return the cached markup of a row, with gaps in place of its text and its URL. These may
    contain words of a message or of a search, which would stay in the cache after an erasure.

    The pages of neighbouring steps have most rows in common. `names` and `values` are the fields of
    the row, and `types` the types of the values. Equal values of another type, such as a safe
    string, make other markup.
    """
    fields = dict(zip(names, values, strict=True))
    return render_to_string(template_name, {**fields, **_GAPS}).strip()


@register.simple_tag
@cache
def mark(name: str, is_in: bool = True) -> SafeString:
    """Return the markup of the square for a message: solid if it is in memory, otherwise hollow."""
    return _drawn("_mark.html", name=name, shape=shape(name), is_in=is_in)


@register.inclusion_tag("inspector/shared/_columns.html")
def columns(*names: str, more: Iterable[str] = (), verb: str = "") -> dict[str, object]:
    """Return the context for the header of a table: the names of its columns, and the label of its
    button (`verb`).
    """
    return {"names": [*names, *more], "verb": verb}


@register.simple_tag
def manage_command(command: str) -> str:
    """Return a management command as people type it where the site runs."""
    return f"{inspector_configuration().MANAGE} {command}"


@register.simple_tag(takes_context=True)
def chosen_display(context: Context) -> SafeString:
    """Return the HTML attributes of a page for the reader's theme and display switches."""
    request = getattr(context, "request", None)
    if request is None:
        return mark_safe("")
    chosen = switched_on(request)
    if theme := theme_of(request):
        chosen["theme"] = theme
    return format_html_join(" ", 'data-{}="{}"', sorted(chosen.items()))


@register.simple_tag
def to(
    page: ShownPage, at: int | None = None, keeps: bool = True, **chosen: int | str | None
) -> SafeString:
    """Return the HTML attributes of a link to another view of the page: its URL, also for HTMX.

    `at` is the step, by default the shown step. With `keeps`, the URL keeps the parameters of
    highlights. `chosen` are further URL parameters.
    """
    return format_html(_LINK, page.link(page.at if at is None else at, keeps, **chosen))


@register.inclusion_tag("inspector/conversation/_fold.html")
def fold(page: ShownPage, name: str, title: str) -> dict[str, object]:
    """Return the context for the heading of a section: a link that unfolds the section, or folds it
    again.
    """
    is_open = name in page.state.query.open
    return {"name": name, "title": title, "href": page.fold_link(name), "is_open": is_open}


@register.simple_tag(takes_context=True)
def top_bar(context: Context) -> SafeString:
    """Return the bar above each page: the menu with the items that the reader may see."""
    request = getattr(context, "request", None)
    if request is None:
        return drawn(context, "inspector/shared/_topbar.html", theme="dark")
    return drawn(
        context,
        "inspector/shared/_topbar.html",
        items=tuple(menu_of(request)),
        is_signed_in=getattr(context.get("user"), "is_authenticated", False),
        route=request.resolver_match.url_name if request.resolver_match else "",
        theme="light" if theme_of(request) == "dark" else "dark",
    )


@register.simple_tag(takes_context=True)
def head_files(context: Context) -> SafeString:
    """Return the markup that loads style sheets and scripts: those of each page, and those that the
    rooms (plug-in features) on this page need.
    """
    request = getattr(context, "request", None)
    shown = [] if request is None else rooms_on(request)
    return drawn(
        context,
        "inspector/shared/_head_files.html",
        styles=tuple(file for room in shown for file in room.styles),
        scripts=tuple(file for room in shown for file in room.scripts),
    )


@register.simple_tag(takes_context=True)
def fragment(context: Context, shown: Fragment) -> SafeString:
    """Return a room's template, rendered with the page's context. Rooms are plug-in features."""
    template = context.template.engine.get_template(shown.template)  # type: ignore[union-attr]  # a template that is rendered has an engine
    with context.push(**shown.context):
        return template.render(context)


@register.simple_tag(takes_context=True)
def fragments(context: Context, shown: Iterable[Fragment]) -> SafeString:
    """Return the rendered templates of several rooms (plug-in features), in their order."""
    return SafeString("".join(fragment(context, each) for each in shown))


@register.simple_tag(takes_context=True)
def absolute(context: Context, address: str) -> str:
    """Return a URL of this site with its host, as other programs need it."""
    request = getattr(context, "request", None)
    return address if request is None else str(request.build_absolute_uri(address))


@register.simple_tag
def sort_link(query: ShownPage, key: str) -> str:
    """Return the URL of the overview in another order, with the same filters."""
    return str(query.link(sort=key))


@register.simple_tag
def message_choice(seq: int) -> SafeString:
    """Return the HTML attributes `name` and `value` of a button that selects a message. A negative
    `seq` selects a simulated draft.
    """
    ((name, number),) = chosen(seq).items()
    return mark_safe(f'name="{name}" value="{number}"')  # noqa: S308


@register.filter
def thousands(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


@register.filter
def signed(number: int) -> str:
    """Return a number with its sign: +85, −24, 0."""
    return f"−{-number:,}" if number < 0 else f"+{number:,}" if number else "0"


@register.filter
def row_text(text: str, page: ShownPage) -> str:
    """Return a text cut to the length of a row, with marks around the phrase that the page
    highlights, such as searched words.
    """
    return history.shown(text, page.marks.phrase)


@register.filter
def pretty_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


@register.simple_tag
def clock(moment: datetime, *forms: str) -> SafeString:
    """Return the markup of a time in some of the forms of `times.written`, with the site's time
    zone.
    """
    words = f"{written(moment, *forms)} {written(moment, 'zone')}"
    local = timezone.localtime(moment)
    return format_html('<time datetime="{}">{}</time>', local.isoformat(timespec="seconds"), words)


@register.filter("written")
def written_as(moment: datetime | date, form: str) -> str:
    """Return a time in one of the forms of `times.written`."""
    return written(moment, form)


@register.filter
def day_or_time(moment: datetime) -> str:
    """Return when something began: 11:08 if that was today, else 24 Nov."""
    return written(moment, "minute" if is_today(moment) else "day")


@register.simple_tag
def query_with(query: ShownPage, **changes: str) -> str:
    """Return the query string of a list with `changes` to its filters. All other filters stay."""
    return str(query.link(**changes))


@register.filter
def ends(text: str) -> tuple[str, str]:
    """Return a long id in two parts: a page may shorten the first part, and always shows the
    second.

    A blank id is put in quotes, or nobody could click it.
    """
    text = text if text.strip() else f"“{text}”"
    tail = ENDS_TAIL if len(text) > 2 * ENDS_TAIL else 0
    return text[: len(text) - tail], text[len(text) - tail :]


@register.filter
def middle(text: str, most: int) -> str:
    """Return an id shortened to `most` characters in the middle, because both ends
    distinguish ids.
    """
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[-tail:]}"


@register.filter
def ago(moment: datetime) -> str:
    """Return how long ago a time was: now, 8 s ago, 2 min ago, 3 h ago, then the date."""
    seconds = int((timezone.now() - moment).total_seconds())
    for limit, unit, words in ((5, 1, "now"), (60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < limit:
            return words if words == "now" else f"{seconds // unit} {words} ago"
    return written(moment, "date")
