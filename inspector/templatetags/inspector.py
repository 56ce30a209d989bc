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
):
    register.filter(_filter)


@register.simple_tag
def flag_words(name: str) -> str:
    """Return the words of a flag in lower case, for use within a line: `over the limit` for the
    flag `over_limit`.
    """
    return flag_named(name).words.lower()


_GAPS = {"href": "\0href", "text": "\0text"}  # no text that is stored has NUL
_LINK = 'href="{0}" hx-get="{0}"'


def _drawn(template_name: str, **context: object) -> SafeString:
    """Return the markup of a small template, without its final line break."""
    context["sprite"] = static("inspector/sprite.svg")
    markup = render_to_string(f"inspector/shared/{template_name}", context)
    return mark_safe(markup.removesuffix("\n"))  # noqa: S308


@register.simple_tag
@cache
def icon(name: str, css: str = "i") -> SafeString:
    """Return the markup of an icon. The markup is cached, because a page has hundreds of icons."""
    return _drawn("_icon.html", name=name, css=css)


@register.simple_tag
@cache
def shape(name: str) -> SafeString:
    """Return the markup of the shape for a kind of message. Readers recognize the kind without
    colour.
    """
    return _drawn("_shape.html", name=name)


# What differs from reader to reader: the token of their forms, and the address of the page
_OF_READER = {"csrf_token": "\0csrf", "here": "\0here"}


@register.simple_tag(takes_context=True)
def drawn(context: Context, template_name: str, **values: object) -> SafeString:
    """Return the markup of a template with `values`. The template also gets `csrf_token`, and
    `here`: the URL of the page.

    The markup is cached by `values`. The values must have no words of messages, which would stay in
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
    """Return the cached markup of a template with `values`. The markup has placeholders for what
    differs between readers, such as the URL of the page. `drawn` replaces the placeholders.

    `gaps` has the names of the placeholders. `site` has the settings on which the URLs of pages
    depend. It is used only in the cache's key.
    """
    return render_to_string(template_name, {**dict(values), **{n: _OF_READER[n] for n in gaps}})


@register.filter
def fields(rows: Iterable[object]) -> list[dict[str, object]]:
    """Return each row as a dictionary of its fields. Templates read dictionaries faster than
    objects.
    """
    return [vars(row) for row in rows]


@register.simple_tag
def drawn_rows(template_name: str, rows: Sequence[ShownPage], between: str = "") -> SafeString:
    """Return the markup of `rows`, joined with `between`. All rows have the same class. The
    template of a row gets `text`, `href`, and the fields that the class lists in `drawn`.

    The class lists in `has_words` the fields with words of messages. A row with a value in such a
    field is not cached, because the words would stay in the cache after an erasure. The markup of
    other rows is cached.
    """
    if not rows:
        return SafeString("")
    names, private = rows[0].drawn, getattr(rows[0], "has_words", ())
    uncached, drawn = drawn_row.__wrapped__, []
    for row, values in zip(rows, map(attrgetter(*names), rows), strict=True):
        draw = uncached if private and any(getattr(row, name) for name in private) else drawn_row
        drawn.append(draw(template_name, names, values, tuple(map(type, values))))
    for name, gap in _GAPS.items():
        if hasattr(rows[0], name):
            pairs = zip(drawn, map(attrgetter(name), rows), strict=True)
            drawn = [markup.replace(gap, _escaped(value)) for markup, value in pairs]
    return SafeString(between.join(drawn))


def _escaped(text: str) -> str:
    """Return a text as markup. This is faster than `conditional_escape`, which matters for hundreds
    of texts.
    """
    return text if isinstance(text, SafeString) else escape(text)


@lru_cache(maxsize=2_000)
def drawn_row(
    template_name: str, names: tuple[str, ...], values: tuple[object, ...], types: tuple[type, ...]
) -> str:
    """Return the cached markup of a row, with placeholders for the row's text and URL. The text and
    URL can have words of a message or a search, which must not stay in the cache after an erasure.

    `names`, `values` and `types` are those of the row's fields. `types` is part of the cache's key,
    because a text and an equal safe string can have different markup.
    """
    fields = dict(zip(names, values, strict=True))
    return render_to_string(template_name, {**fields, **_GAPS}).strip()


@register.simple_tag
@cache
def mark(name: str, is_in: bool = True) -> SafeString:
    """Return the markup of the square for a message, with the shape `name` in it. The square is
    solid if the message is in memory, else hollow.
    """
    return _drawn("_mark.html", name=name, shape=shape(name), is_in=is_in)


@register.inclusion_tag("inspector/shared/_columns.html")
def columns(*names: str, more: Iterable[str] = (), verb: str = "") -> dict[str, object]:
    """Return the context for the header of a table: the names of its columns, first `names`, then
    `more`.

    With `verb`, the table has one more column, with a button in each row. `verb` is the header of
    this column, for screen readers only.
    """
    return {"names": [*names, *more], "verb": verb}


@register.simple_tag
def manage_command(command: str) -> str:
    """Return the command line of a management command in this installation, such as `python
    manage.py sign_in_link` for `sign_in_link`.
    """
    return f"{inspector_configuration().MANAGE} {command}"


@register.simple_tag(takes_context=True)
def chosen_display(context: Context) -> SafeString:
    """Return the HTML attributes of the page for the reader's theme and display switches."""
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
    """Return the HTML attributes of a link to another view of the page. The link works with and
    without HTMX.

    - `at`: the step; None for the shown step.
    - `keeps`: whether the URL keeps the parameters of highlights, such as the searched phrase.
    - `chosen`: further URL parameters.
    """
    return format_html(_LINK, page.link(page.at if at is None else at, keeps, **chosen))


@register.inclusion_tag("inspector/conversation/_fold.html")
def fold(page: ShownPage, name: str, title: str) -> dict[str, object]:
    """Return the context for the heading of a section, which is a link that unfolds or folds the
    section.
    """
    is_open = name in page.state.query.open
    return {"name": name, "title": title, "href": page.fold_link(name), "is_open": is_open}


@register.simple_tag(takes_context=True)
def top_bar(context: Context) -> SafeString:
    """Return the bar at the top of each page, with the menu items that the reader may see."""
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
    """Return the markup that loads the style sheets and scripts of the page, including those of
    rooms.
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
    """Return a template of a room, rendered with the context of the page."""
    template = context.template.engine.get_template(shown.template)  # type: ignore[union-attr]  # a template that is rendered has an engine
    with context.push(**shown.context):
        return template.render(context)


@register.simple_tag(takes_context=True)
def fragments(context: Context, shown: Iterable[Fragment]) -> SafeString:
    """Return templates of rooms in their order, rendered with the context of the page."""
    return SafeString("".join(fragment(context, each) for each in shown))


@register.simple_tag(takes_context=True)
def absolute(context: Context, address: str) -> str:
    """Return a URL of this site with its host, for use in other programs."""
    request = getattr(context, "request", None)
    return address if request is None else str(request.build_absolute_uri(address))


@register.simple_tag
def sort_link(query: ShownPage, key: str) -> str:
    """Return the URL of the overview in the order `key`, such as "activity", with the same
    filters.
    """
    return str(query.link(sort=key))


@register.simple_tag
def message_choice(seq: int) -> SafeString:
    """Return the HTML attributes of a button that selects a message. A negative `seq` selects a
    draft of a simulation.
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
    """Return the part of a text that a row shows. If the phrase that the page highlights is in the
    text, the part is around the first match, as HTML with the match marked. Otherwise, it is the
    beginning of the text, as plain text.
    """
    return history.shown(text, page.marks.phrase)


@register.filter
def pretty_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


@register.simple_tag
def clock(moment: datetime, *forms: str) -> SafeString:
    """Return the markup of a time in the site's time zone, followed by the zone's name: `07:06
    CET`. `forms` are names in `times.FORMS`.
    """
    words = f"{written(moment, *forms)} {written(moment, 'zone')}"
    local = timezone.localtime(moment)
    return format_html('<time datetime="{}">{}</time>', local.isoformat(timespec="seconds"), words)


@register.filter("written")
def written_as(moment: datetime | date, form: str) -> str:
    """Return a time in words. `form` is a name in `times.FORMS`."""
    return written(moment, form)


@register.filter
def when(moment: datetime) -> str:
    """Return when something began: `at 11:08 today`, or for another day `on 24 Nov`."""
    if is_today(moment):
        return f"at {written(moment, 'minute')} today"
    return f"on {written(moment, 'day')}"


@register.simple_tag
def query_with(query: ShownPage, **changes: str) -> str:
    """Return the query string of a list, with `changes` to its filters."""
    return str(query.link(**changes))


@register.filter
def ends(text: str) -> tuple[str, str]:
    """Return an ID in two parts: a page can cut the first part, and always shows the second. The
    second part of a short ID is "".

    A blank ID gets quotation marks, so that people can click it.
    """
    text = text if text.strip() else f"“{text}”"
    tail = ENDS_TAIL if len(text) > 2 * ENDS_TAIL else 0
    return text[: len(text) - tail], text[len(text) - tail :]


@register.filter
def middle(text: str, most: int) -> str:
    """Shorten an ID to `most` characters by cutting its middle, because IDs differ at both ends."""
    if len(text) <= most:
        return text
    tail = most // 3
    return f"{text[: most - tail - 1]}…{text[-tail:]}"


@register.filter
def ago(moment: datetime) -> str:
    """Return how long ago a time was: `now`, `8 s ago`, `2 min ago`, `3 h ago`. For 24 hours or
    more, return the date.
    """
    seconds = int((timezone.now() - moment).total_seconds())
    for limit, unit, words in ((5, 1, "now"), (60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h")):
        if seconds < limit:
            return words if words == "now" else f"{seconds // unit} {words} ago"
    return written(moment, "date")
