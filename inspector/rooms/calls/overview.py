"""The start page of model calls: totals by day and by model, and the newest calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from django.utils import timezone
from django.utils.http import urlencode

from chatmemory import Prices
from chatmemory.database import in_list
from chatmemory.explain.wording import counted
from chatmemory.known_models import known_model
from chatmemory.models import Memory
from chatmemory.recall.cost import Bill, providers
from inspector.forms.fields import searchable
from inspector.rooms.calls.models import ModelCall
from inspector.shell.prices import MILLION, ChosenPrices

DAYS = 14
NEWEST = 30
BAR_HEIGHT = 26
ERROR = 90  # characters
WHOLE = Decimal(1)
FAILED = ~Q(error="")


@dataclass(frozen=True)
class CallFilter:
    """The filter of the page: a day, such as `2026-11-28`, and a model.

    An empty `day` means any day, and an empty `model` means any model.
    """

    day: str = ""
    model: str = ""

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> CallFilter:
        """Read the filter from the parameters of a URL. An invalid day is ignored."""
        day = searchable(parameters.get("day", ""))
        try:
            date.fromisoformat(day)
        except ValueError:
            day = ""
        return cls(day, searchable(parameters.get("model", "")))

    def link(self, **changes: str) -> str:
        """Return the query string of this filter with some fields changed. A field that already has
        the given value is cleared, so that a second click on a link shows all calls again.
        """
        then = {
            name: "" if getattr(self, name) == value else value for name, value in changes.items()
        }
        chosen = replace(self, **then)
        values = {"day": chosen.day, "model": chosen.model}
        return "?" + urlencode({name: value for name, value in values.items() if value})

    def rows(self) -> QuerySet[ModelCall]:
        rows = ModelCall.objects.without_bodies()
        if self.day:
            begin = midnight_of(date.fromisoformat(self.day))
            rows = rows.filter(at__gte=begin, at__lt=begin + timedelta(days=1))
        return rows.filter(model=self.model) if self.model else rows


@dataclass(frozen=True)
class CallTotals:
    """Sums over model calls: their number, the failed calls (`errors`), and tokens as providers
    counted them.

    - `input` is the number of all prompt tokens, and `cached` the number of those that came from
      the prompt cache.
    - `cost` is the cost of the prompts, as a number of input tokens at the full price. For example,
      100 cached tokens at a tenth of the full price cost 10.
    """

    calls: int = 0
    errors: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    cost: Decimal = Decimal(0)

    def plus(self, other: CallTotals) -> CallTotals:
        return CallTotals(
            self.calls + other.calls,
            self.errors + other.errors,
            self.input + other.input,
            self.cached + other.cached,
            self.output + other.output,
            self.cost + other.cost,
        )

    @property
    def from_cache(self) -> int | None:
        """The percentage of input tokens that came from the prompt cache; None without input
        tokens.
        """
        return round(100 * self.cached / self.input) if self.input else None


NOTHING = CallTotals()


def midnight_of(day: date) -> datetime:
    """Return the start of a day in the current time zone."""
    return timezone.make_aware(datetime.combine(day, datetime.min.time()))


def totals_by_day_and_model(since: datetime) -> dict[tuple[date, str], CallTotals]:
    """Return the totals of all calls that began at or after the time `since`, by day and model.
    This takes one query.
    """
    rows = ModelCall.objects.filter(at__gte=since).annotate(day=TruncDate("at"))
    found: dict[tuple[date, str], CallTotals] = defaultdict(CallTotals)
    sums = {name: Sum(name) for name in ("input", "cached", "written", "output")}
    for row in (
        rows.values("day", "model", "provider")
        .annotate(calls=Count("n"), errors=Count("n", filter=FAILED), **sums)
        .order_by()
    ):
        tokens = {name: row[name] or 0 for name in sums}
        cost = prompt_cost(row["model"], row["provider"], tokens)
        place = row["day"], row["model"]
        one = CallTotals(
            row["calls"], row["errors"], tokens["input"], tokens["cached"], tokens["output"], cost
        )
        found[place] = found[place].plus(one)
    return dict(found)


def prompt_cost(model: str, provider: str, tokens: Mapping[str, int]) -> Decimal:
    """Return the cost of prompts, as a number of input tokens at the full price. For example, 100
    cached tokens at a tenth of the full price cost 10.

    `tokens` has the counts `input` (all prompt tokens), `cached` (read from the prompt cache) and
    `written` (written to the cache).

    Cached and written tokens have the prices of the model. If the model is unknown, they have the
    prices of the provider. An unknown price counts as the full price.
    """
    known, usual = known_model(model), providers().get(provider)
    cached = known.cached if known else usual.cached if usual else None
    write = known.write if known else usual.write if usual else None
    prices = Prices(WHOLE, WHOLE if cached is None else cached, WHOLE if write is None else write)
    return prices.weight(Bill(1, tokens["input"], tokens["cached"], tokens["written"]))


@dataclass(frozen=True)
class DayBar:
    """A bar for one day in the chart of days.

    - `left`, `top` and `height` are in units of the chart's SVG.
    - `words` is the formatted figure of the day, such as `9,812`.
    - `css` is the CSS class for the color of the bar.
    - `link` is a query string that shows only the calls of the day. If the page already shows only
      this day, the link shows all days.
    """

    day: date
    left: float
    top: float
    height: float
    words: str
    css: str
    link: str


@dataclass(frozen=True)
class DayRow:
    """A row of the chart of days. It shows one figure of each day, such as the number of calls or
    the cost.

    - `name` is the name of the figure, such as `Input tokens`.
    - `bars` has a bar for each day, the oldest first.
    - `today` is the formatted value of today.
    - `is_red` marks the row of failed calls.
    """

    name: str
    bars: Sequence[DayBar]
    today: str
    is_red: bool = False

    @property
    def words(self) -> str:
        return f"{self.name}, each of {DAYS} days: {', '.join(bar.words for bar in self.bars)}"


@dataclass(frozen=True)
class ModelRow:
    """A row of the table of models, or the row that sums all models.

    - `totals` are sums over the model's calls in the last 14 days. If the page shows only one day,
      they are sums over this day.
    - `cost` is the formatted cost of these calls.
    - `link` is a query string that shows only the calls of this model. "" for the row of all
      models.
    - `is_chosen` means that the page already shows only this model. Then `link` shows all models.
    """

    model: str
    totals: CallTotals
    cost: str
    link: str
    is_chosen: bool


@dataclass(frozen=True)
class ListedCall:
    """A row of the list of model calls. `cost` is the formatted cost of the call, or "" if unknown.
    The property `stands_out` is the error or the prefix change of the call in words, or "".
    """

    call: ModelCall
    cost: str

    @property
    def stands_out(self) -> str:
        call = self.call
        if call.error:
            return f"failed: {' '.join(call.error[: 3 * ERROR].split())[:ERROR]}"
        if call.is_broken and call.again:
            return f"prefix changed, {counted(call.again, 'token')} resent"
        return ""

    @property
    def from_cache(self) -> int | None:
        return round(100 * (self.call.cached or 0) / self.call.input) if self.call.input else None


class CallsPage:
    """Presents the start page of model calls."""

    def __init__(self, which: CallFilter, prices: ChosenPrices) -> None:
        self.which, self.prices = which, prices
        self._today = timezone.localdate()
        self._days = [self._today - timedelta(days=n) for n in reversed(range(DAYS))]

    @cached_property
    def _totals(self) -> Mapping[tuple[date, str], CallTotals]:
        return totals_by_day_and_model(midnight_of(self._days[0]))

    @cached_property
    def newest(self) -> list[ListedCall]:
        """The newest 30 calls that fit the filter, without calls of deleted conversations."""
        found = list(self.which.rows().order_by("-at", "-memory", "-n")[:NEWEST])
        ids = {call.memory_id for call in found}
        known = set(Memory.objects.filter(in_list("id", ids)).values_list("pk", flat=True))
        return [ListedCall(call, self._cost_of(call)) for call in found if call.memory_id in known]

    @property
    def is_empty(self) -> bool:
        return not self.newest and self.which == CallFilter()

    @cached_property
    def all(self) -> CallTotals:
        """The totals of all calls in the last 14 days, whatever the filter."""
        return self._sum(self._totals.values())

    @cached_property
    def today(self) -> CallTotals:
        return self._of_days.get(self._today, NOTHING)

    @cached_property
    def _of_days(self) -> Mapping[date, CallTotals]:
        found: dict[date, CallTotals] = defaultdict(CallTotals)
        for (day, model), totals in self._totals.items():
            if self.which.model in ("", model):
                found[day] = found[day].plus(totals)
        return dict(found)

    @staticmethod
    def _sum(totals: Iterable[CallTotals]) -> CallTotals:
        found = NOTHING
        for each in totals:
            found = found.plus(each)
        return found

    @property
    def title(self) -> str:
        """The title, such as `100 calls today, cost $0.74`. If the URL has no input price, the
        title has the number of input tokens instead of the cost. Without calls today, the title
        counts the calls of the last 14 days.
        """
        if not self.today.calls:
            return f"No calls today, {counted(self.all.calls, 'call')} in {DAYS} days"
        cost = (
            f"cost {self.cost(self.today)}"
            if self.prices.has_money
            else f"{short(self.today.input)} input tokens"
        )
        return f"{counted(self.today.calls, 'call')} today, {cost}"

    @property
    def days(self) -> list[DayRow]:
        return [
            self._day_row("Calls", lambda each: each.calls, lambda each: f"{each.calls:,}"),
            self._day_row("Cost", lambda each: each.cost, self.cost),
            self._day_row("Input tokens", lambda each: each.input, lambda each: short(each.input)),
            self._day_row("Cached input", lambda each: each.from_cache or 0, percent),
            self._day_row(
                "Output tokens", lambda each: each.output, lambda each: short(each.output)
            ),
            self._day_row(
                "Failed calls",
                lambda each: each.errors,
                lambda each: f"{each.errors:,}",
                is_red=True,
            ),
        ]

    def _day_row(
        self,
        name: str,
        size: Callable[[CallTotals], Decimal | int],
        words: Callable[[CallTotals], str],
        is_red: bool = False,
    ) -> DayRow:
        each = [self._of_days.get(day, NOTHING) for day in self._days]
        most = max([*map(size, each), 1])
        heights = [BAR_HEIGHT * float(size(totals)) / float(most) for totals in each]
        bars = [
            DayBar(
                day,
                n + 0.12,
                round(28 - height, 1),
                round(height, 1),
                words(totals),
                "m-red" if is_red else "m-ink" if day == self._today else "m-bar",
                self.which.link(day=f"{day}"),
            )
            for n, (day, totals, height) in enumerate(zip(self._days, each, heights, strict=True))
        ]
        return DayRow(name, bars, words(each[-1]), is_red)

    @property
    def models(self) -> list[ModelRow]:
        """The models of the last 14 days with their totals, most input tokens first. If the filter
        has a day, only the calls of this day count.
        """
        found: dict[str, CallTotals] = defaultdict(CallTotals)
        for (day, model), totals in self._totals.items():
            if not self.which.day or f"{day}" == self.which.day:
                found[model] = found[model].plus(totals)
        rows = [
            ModelRow(
                model,
                totals,
                self.cost(totals),
                self.which.link(model=model),
                bool(model) and model == self.which.model,
            )
            for model, totals in found.items()
        ]
        return sorted(rows, key=lambda row: (-row.totals.input, row.model))

    @property
    def of_all(self) -> ModelRow:
        totals = self._sum(row.totals for row in self.models)
        return ModelRow("All", totals, self.cost(totals), "", False)

    @property
    def chosen_day(self) -> date | None:
        return date.fromisoformat(self.which.day) if self.which.day else None

    def cost(self, totals: CallTotals) -> str:
        """Return the formatted cost of the calls in `totals`. If the URL has an input price, the
        cost is in money and includes the output tokens. Otherwise the cost is a number of input
        tokens.
        """
        if not self.prices.has_money:
            return short(round(totals.cost))
        answers = self.prices.answer * totals.output
        prompts = totals.cost * (self.prices.input or 0) / MILLION
        return f"{self.prices.currency}{prompts + answers:,.2f}"

    def _cost_of(self, call: ModelCall) -> str:
        if call.input is None:
            return ""
        tokens = {"input": call.input, "cached": call.cached or 0, "written": call.written or 0}
        cost = prompt_cost(call.model, call.provider, tokens)
        return self.cost(CallTotals(cost=cost, output=call.output or 0))


def percent(totals: CallTotals) -> str:
    return "" if totals.from_cache is None else f"{totals.from_cache} %"


def short(number: int) -> str:
    """Format a number briefly: `9,812`, `12 k` or `3.1 M`."""
    if number < 10_000:
        return f"{number:,}"
    if number < MILLION:
        return f"{number / 1_000:,.0f} k"
    return f"{number / MILLION:,.1f} M"
