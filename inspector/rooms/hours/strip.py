"""The "strip" of the overview: a table with a column for each group. Its rows show cost, tokens,
new problems and turns, by hour or by day.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.utils import timezone

from chatmemory.explain.wording import counted
from chatmemory.flags import flag_named
from chatmemory.messages.json_values import JsonDict, JsonValue
from inspector.conf import inspector_configuration
from inspector.rooms.hours.clock import HOUR, hour_of
from inspector.rooms.hours.figures import EVERYTHING, SHOWN, Made, ratio_of
from inspector.rooms.hours.fleet import NO_GROUP
from inspector.rooms.hours.money import money
from inspector.shell.room import Listed
from inspector.shell.rooms import page_url
from inspector.shell.times import is_today, written

HEIGHT, LEAST = 24, 5
THOUSAND = 1_000
SPANS = {"14d": "14 days", "24h": "24 hours"}
OTHERS = ("provider", "model", "day", "flagged")  # filters that are no split, or seldom one
_TURNS, _TOKENS, _COST, _CASES, _COUNTED, _ESTIMATED = range(6)


@dataclass(frozen=True)
class Bar:
    """A bar of a small chart. `left` is the index of its hour or day. `top` and `height` are SVG
    lengths, in a chart of height 24.

    A bar that counts cases has `words`, the label for screen readers, and `href`, the link to the
    conversations with these cases. For other bars, both are "".
    """

    left: int
    top: str
    height: str
    words: str = ""
    href: str = ""


@dataclass(frozen=True)
class Cell:
    """A cell of the table: a value in words, and a small chart of the value over time.

    - `ratio`: the value since a change divided by the value before the change, such as "×2.2"; ""
      if unknown or close to 1.
    - `money`: the cost in money, or "" if prices are unknown.
    - `is_red`: whether the value counts cases of a flag that is shown in red.
    - `bars`: the bars of the chart. Charts of cost and tokens have three SVG paths instead: `line`,
      `area` and `now`.
    - `line`: the path of the values over time.
    - `area`: the path around the space below the line.
    - `now`: the part of the line since the change, or "" without a ratio.
    """

    words: str
    ratio: str = ""
    money: str = ""
    is_red: bool = False
    area: str = ""
    line: str = ""
    now: str = ""
    bars: Sequence[Bar] = ()


@dataclass(frozen=True)
class Group:
    """A column of the table: a group of conversations, with its cells.

    `words` is the group's title, `size` its number of conversations, and `href` the link to their
    list. `change` is the group's newest change in words, or "". `mark` is the index of the hour or
    day of this change in the charts, or None.
    """

    name: str
    words: str
    size: int
    href: str
    change: str = ""
    mark: int | None = None
    cells: Sequence[Cell] = ()


@dataclass(frozen=True)
class Row:
    """The head of a row of the table: its title, and a note or "". `is_cases` says whether the row
    counts new problems.
    """

    words: str
    note: str = ""
    is_cases: bool = False


@dataclass(frozen=True)
class Choices:
    """The groupings and periods that can be chosen for the table. `split` is the grouping shown
    now, such as `tenant`. `span` is the period shown now, such as `14 days`.

    `splits` and `spans` list all groupings and periods: name, words and link of each.
    """

    split: str
    span: str
    splits: Sequence[tuple[str, str, str]]
    spans: Sequence[tuple[str, str, str]]

    @property
    def split_words(self) -> str:
        return next((words for name, words, _ in self.splits if name == self.split), "Tenant")


@dataclass(frozen=True)
class Strip:
    """The table over time for a list of conversations.

    - `rows`: the heads of the rows.
    - `groups`: the columns with their cells.
    - `others`: the number of groups without a column in the table.
    - `choices`: the groupings and periods that can be chosen for the table.
    - `first`, `last`: words for the first and the last hour or day.
    - `at`: when the figures were computed.
    - `left`: how many conversations have hourly figures so far, such as `180 of 232 conversations
      examined`; "" if all have them.
    - `untimed`: the number of messages without a time.
    """

    rows: Sequence[Row]
    groups: Sequence[Group]
    others: int
    choices: Choices
    first: str
    last: str
    at: datetime
    left: str = ""
    untimed: int = 0

    @property
    def columns(self) -> int:
        return 24 if self.choices.span == SPANS["24h"] else 14

    @property
    def table(self) -> list[tuple[Row, list[tuple[Group, Cell]]]]:
        return [
            (row, [(group, group.cells[n]) for group in self.groups])
            for n, row in enumerate(self.rows)
        ]


def strip_of(listed: Listed, made: Made) -> Strip:
    """Return the table over time for the listed conversations. `made` are their figures."""
    split, span = made.split, "24h" if listed.span == "24h" else "14d"
    return _strip(listed, made, split, span)


def linked(listed: Listed, **changes: str) -> str:
    """Return the URL of the overview with its present filters, except for the given `changes`."""
    return page_url("overview") + listed.link(**changes)


def _strip(listed: Listed, made: Made, split: str, span: str) -> Strip:
    values = made.values
    starts = values["hours" if span == "24h" else "days"]
    flags = [flag_named(name) for name in values["flags"]]
    key = "hours" if span == "24h" else "days"
    names = sorted(
        (name for name in values["groups"] if name != EVERYTHING),
        key=lambda name: _order(values["groups"][name], key, name),
    )
    shown = [EVERYTHING, *(names[:SHOWN] if len(names) > 1 else ())]
    basis = _basis(values["groups"][EVERYTHING][key])
    rows = [
        Row("Cost per turn", f"tokens at the input price, {basis}"),
        Row("Tokens per turn", basis),
        *(
            Row(each.cases.past.title if each.cases.past else each.words, is_cases=True)
            for each in flags
        ),
        Row("Turns"),
    ]
    spans = [(name, words, linked(listed, span=name)) for name, words in SPANS.items()]
    return Strip(
        rows,
        [_group(listed, values, name, split, span) for name in shown],
        len(names[SHOWN:]) + values["others"],
        Choices(split, SPANS[span], _splits(listed, values["splits"]), spans),
        _start(starts[0], span),
        _last(starts[-1], span),
        made.at,
        _left(*values["examined"]),
        values["untimed"],
    )


def _left(known: int, whole: int, seconds: int) -> str:
    """Return how far the examination is: `180 of 232 conversations examined, about 2 min left`.
    Return "" if all conversations are examined.
    """
    if known >= whole:
        return ""
    time = f", about {max(1, round(seconds / 60)):,} min left" if seconds else ""
    return f"{known:,} of {whole:,} conversations examined{time}"


def _basis(columns: Sequence[Sequence[JsonValue]]) -> str:
    """Return whether tokens were counted by providers, or estimated."""
    counted, estimated = (sum(each[n] for each in columns) for n in (_COUNTED, _ESTIMATED))
    if counted and estimated:
        return "from recorded calls, else estimated"
    return "from recorded calls" if counted else "estimated"


def _order(group: JsonDict, key: str, name: str) -> tuple[int, float, int, str]:
    """Return a key that sorts groups: first those with cases today, then those whose cost changed
    most, then those with most turns.
    """
    columns = group[key]
    today = sum(columns[-1][_CASES].values())
    ratio = _ratio(group, key, _COST) or 1.0
    change = max(ratio, 1 / ratio) if ratio else 1.0
    return -today, -change, -sum(each[_TURNS] for each in columns), name


def _ratio(group: JsonDict, key: str, place: int) -> float | None:
    at = mark_of(group, group.get("starts", ()))
    return ratio_of(group[key], place, at) if key == "days" else None


def mark_of(group: JsonDict, starts: Sequence[int]) -> int | None:
    if not group.get("change"):
        return None
    found = [n for n, start in enumerate(starts) if start <= group["change"][0]]
    return found[-1] if found else None


def _group(listed: Listed, values: JsonDict, name: str, split: str, span: str) -> Group:
    key = "hours" if span == "24h" else "days"
    starts = values[key]
    group = {**values["groups"][name], "starts": starts}
    columns = group[key]
    mark = mark_of(group, starts)
    facet = {} if name == EVERYTHING else facet_of(split, name)
    cells = [
        _with_money(
            _area(columns, _COST, THOUSAND, _ratio(group, key, _COST), mark), group, columns
        ),
        _area(columns, _TOKENS, 1, _ratio(group, key, _TOKENS), mark),
    ]
    for flag in values["flags"]:
        is_red = flag_named(flag).is_red
        cells.append(_bars(columns, flag, is_red, starts, span, listed, facet))
    cells.append(_turns(columns))
    change = f"{group['change'][1]} · {_when(group['change'][0])}" if mark is not None else ""
    return Group(
        name,
        "All" if name == EVERYTHING else values["words"].get(name) or words_of(split, name),
        group["size"],
        linked(listed, **dict.fromkeys(("policy", "tenant", "label", *OTHERS), ""))
        if name == EVERYTHING
        else linked(listed, **facet),
        change,
        mark,
        cells,
    )


def _with_money(cell: Cell, group: JsonDict, columns: Sequence[Sequence[JsonValue]]) -> Cell:
    """Return the cell for cost, with the newest cost in money by the site's prices."""
    known = [each[_COST] for each in columns if each[_COST]]
    prices = inspector_configuration().PRICES
    return replace(
        cell, money=money(known[-1] / THOUSAND, group["models"], prices) if known else ""
    )


def words_of(split: str, name: str) -> str:
    if name == NO_GROUP:
        return {"tenant": "no tenant"}.get(split, "none")
    return name


def facet_of(split: str, name: str) -> dict[str, str]:
    """Return the URL parameters that filter a list by a group. For the group `acme/` of the
    grouping `tenant`, these are `{"tenant": "acme/"}`. Return an empty dictionary if no filter
    finds just this group.
    """
    kind, _, label = split.partition(":")
    if name == NO_GROUP:
        return {}
    if kind == "label":
        return {"label": f"{label}:{name}"}
    if kind in ("tenant", "policy", "provider", "model"):
        return {kind: name}
    return {}


def _area(
    columns: Sequence[Sequence[JsonValue]],
    place: int,
    unit: int,
    ratio: float | None,
    mark: int | None,
) -> Cell:
    numbers = [each[place] or None for each in columns]
    known = [each for each in numbers if each]
    if not known:
        return Cell("")
    most = max(known) or 1
    tops = [HEIGHT if each is None else HEIGHT - (HEIGHT - 3) * each / most for each in numbers]
    steps = "".join(f"V{top:.1f}H{n + 1}" for n, top in enumerate(tops))
    line = f"M0 {tops[0]:.1f}" + steps.partition("H")[1] + steps.partition("H")[2]
    now, last = "", max(n for n, each in enumerate(numbers) if each)
    if ratio is not None and mark is not None:
        later = "".join(
            f"V{top:.1f}H{n + 1}" for n, top in enumerate(tops[: last + 1]) if n >= mark
        )
        now = f"M{mark} {tops[mark]:.1f}" + later.partition("H")[1] + later.partition("H")[2]
    return Cell(
        f"{known[-1] / unit:,.0f}",
        f"×{ratio:.1f}" if ratio is not None else "",
        area=f"M0 {HEIGHT}{steps}V{HEIGHT}Z",
        line=line,
        now=now,
    )


def _bars(
    columns: Sequence[Sequence[JsonValue]],
    flag: str,
    is_red: bool,
    starts: Sequence[int],
    span: str,
    listed: Listed,
    facet: dict[str, str],
) -> Cell:
    numbers = [each[_CASES].get(flag, 0) for each in columns]
    most = max(*numbers, LEAST)
    bars = [
        replace(
            _bar(n, number, most),
            words=f"{counted(number, 'case')}, {_when(starts[n])}",
            href=linked(listed, **facet, flagged=flag, day=_day(starts[n], span)),
        )
        for n, number in enumerate(numbers)
        if number
    ]
    words = f"{numbers[-1] if span == '14d' else sum(numbers):,}"
    return Cell(words, is_red=is_red, bars=bars)


def _turns(columns: Sequence[Sequence[JsonValue]]) -> Cell:
    numbers = [each[_TURNS] for each in columns]
    most = max(*numbers, LEAST)
    return Cell(
        f"{numbers[-1]:,}" if len(columns) == 14 else f"{sum(numbers):,}",
        bars=[_bar(n, number, most) for n, number in enumerate(numbers) if number],
    )


def _bar(n: int, number: int, most: int) -> Bar:
    height = (HEIGHT - 4) * number / most
    return Bar(n, f"{HEIGHT - height:.1f}", f"{height:.1f}")


def _day(start: int, span: str) -> str:
    local = datetime.fromtimestamp(start, timezone.get_default_timezone())
    return f"{local:%Y-%m-%dT%H}" if span == "24h" else f"{local:%Y-%m-%d}"


def _when(start: int) -> str:
    if is_today(start):
        return f"today {written(start, 'minute')}" if start % (24 * HOUR) else "today"
    return written(start, "weekday")


def _last(start: int, span: str) -> str:
    """Return the words for the newest column: "now" or "today". If its figures are older, return
    their time or day.
    """
    if span == "24h":
        is_now = hour_of(timezone.now()) == start
        return "now" if is_now else written(start, "minute")
    return "today" if is_today(start) else written(start, "day")


def _start(start: int, span: str) -> str:
    return written(start, "minute" if span == "24h" else "day")


def _splits(listed: Listed, splits: Sequence[str]) -> list[tuple[str, str, str]]:
    words = {each: each.partition(":")[2] or each.capitalize() for each in splits}
    return [(split, name, linked(listed, split=split)) for split, name in words.items()]
