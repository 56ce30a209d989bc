"""The URL parameters of the overview, and the buttons, menus and links that change them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from django.db.models import Q
from django.utils import timezone
from django.utils.http import urlencode

from chatmemory import database, policy_kinds
from chatmemory.flags import flag_named, flags, flags_and_parts, today
from chatmemory.managers import CLIENT
from chatmemory.patterns import declared_pattern
from chatmemory.reading.cursors import CursorPage
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.overview import count_each
from chatmemory.search import searches_messages
from inspector.forms.fields import searchable
from inspector.shell import rooms
from inspector.shell.times import is_today, written

SHORTEST = 3
FACETS = ("tenant", "label", "provider", "model", "day")  # chips that links keep
OF_ROOMS = ("provider", "model", "day")
OF_STRIP = ("split", "span")
NARROWING = ("q", "policy", "active", "flagged", *FACETS)
PARAMETERS = ("q", "policy", "active", "flagged", "sort", *FACETS, *OF_STRIP)
OWN_ORDERINGS = {
    "match": "Best match",
    "activity": "Last activity",
    "forgotten": "Most messages evicted",
    "fill": "Fullest memory",
    "said": "Most messages",
}
ALWAYS_OFFERED = (("active", "1"),)
MENUS: Mapping[str, Sequence[str]] = {
    "Any time": ("active", "day"),
    "Tenant": ("tenant",),
    "Label": ("label",),
    "Policy": ("policy",),
    "Provider": ("provider",),
    "Model": ("model",),
    "Flag": ("flagged",),
}
POLICY_LIMIT = declared_pattern(r"[0-9]{1,9}")
Facets = Mapping[str, Sequence[tuple[str, int, str]]]
Counts = Mapping[tuple[str, str], int | None]


@dataclass(frozen=True)
class Chip:
    """A button that sets the filter `name`, or removes it if `pressed`. `count` is how many
    conversations the list has when this filter is set; None if unknown.
    """

    label: str
    count: int | None
    pressed: bool
    href: str
    name: str = ""


@dataclass(frozen=True)
class Menu:
    """A menu of values for a filter that is not set.

    - `name` is the title of the menu, such as "Tenant". `chips` are the buttons for its values.
    - `at` is when the numbers on the buttons were counted. None if they include the newest change,
      or if the menu has no numbers.
    """

    name: str
    chips: Sequence[Chip]
    at: datetime | None = None


@dataclass(frozen=True)
class Ages:
    """The times at which the counts of an overview were made: `filters` for the filters by activity
    and policy, `flags` for flags, and `facets` for all other filters, such as the tenant. A time is
    None if the counts include the newest change.
    """

    filters: datetime | None = None
    flags: datetime | None = None
    facets: datetime | None = None

    def oldest(self, names: Iterable[str]) -> datetime | None:
        """Return the time of the oldest counts of these filters; None if all their counts include
        the newest change.
        """
        of_filters = {"active": self.filters, "flagged": self.flags}
        times = [of_filters.get(name, self.facets) for name in names]
        times += [self.filters] * ("policy" in names)
        return min(filter(None, times), default=None)


# Wide: the parameters of a URL, with a field for each name: filters are set by their names.
@dataclass(frozen=True)
class OverviewQuery:
    """The search, the filters, the order and the page of an overview. Unknown values are ignored.

    - `q` is the search, and `sort` the order.
    - `policy` is a kind of policy, or a kind and a limit: `token_window:4000`.
    - `active` selects conversations that changed today, and `flagged` conversations with a flag.
      With a `day`, `flagged` selects the cases that began on this day.
    - `split` and `span` choose the groups and the period of the chart over time.
    - `cursor` is the position of the page in the list.

    Any other field is the value of the filter with the same name, such as `tenant`.
    """

    q: str = ""
    policy: str = ""
    label: str = ""
    active: str = ""
    flagged: str = ""
    sort: str = "activity"
    tenant: str = ""
    provider: str = ""
    model: str = ""
    day: str = ""
    split: str = ""
    span: str = ""
    cursor: str = ""

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> OverviewQuery:
        """Return the query that the parameters of a URL describe. Unknown values are left out, and
        texts are cut to 200 characters.
        """
        texts = {name: searchable(parameters.get(name, "")) for name in PARAMETERS}
        flag = searchable(parameters.get("flag", ""))  # the API's name of the parameter
        texts["flagged"] = texts["flagged"] or flag
        texts |= {name: today(texts[name]) for name in ("flagged", "sort")}
        known: dict[str, list[str]] = {
            "policy": [kind for kind, _ in policy_choices()],
            "flagged": [each.name for each in flags_and_parts(texts["flagged"])],
            "active": ["1"],
            "sort": list(orderings()),
        }
        limit = texts["policy"].partition(":")[2]
        if POLICY_LIMIT.fullmatch(limit):
            known["policy"] += [f"{each}:{limit}" for each in known["policy"]]
        valid = {name: value for name, value in texts.items() if value in known.get(name, [value])}
        valid = {name: value for name, value in valid.items() if value}
        valid.setdefault("sort", usual_sort(valid.get("flagged", ""), valid.get("q", "")))
        return cls(**valid, cursor=parameters.get("older") or parameters.get("newer") or "")

    @cached_property
    def which(self) -> MemoryFilter:
        kind, _, limit = self.policy.partition(":")
        also = self._cases if self._cases is not None else self._of_rooms
        if limit:
            also = (also or Q()) & Q(policy_limit=int(limit))
        has_flag = self.flagged and self._cases is None
        return MemoryFilter(
            search=self.q,
            policy=kind,
            label=self.label,
            active_since=midnight() if self.active else None,
            flag=flag_named(self.flagged) if has_flag else None,
            id_prefix=self.tenant,
            also=also,
        )

    @property
    def _of_rooms(self) -> Q | None:
        """The condition of the filters that rooms know."""
        return self._narrowed(*OF_ROOMS)

    def _narrowed(self, *names: str) -> Q | None:
        condition = Q()
        for name in names:
            if value := getattr(self, name):
                condition &= rooms.narrowing(name, value) or Q()
        return condition or None

    @cached_property
    def _cases_on(self) -> Mapping[str, int] | None:
        """The number of cases on the chosen day by conversation, including cases that were repaired
        later. None unless a day and a flag with known past cases are chosen.
        """
        return rooms.cases_on(self.day, self.flagged) if self.day and self.flagged else None

    @property
    def _cases(self) -> Q | None:
        """The database condition for conversations with a case of the chosen flag on the chosen
        day.
        """
        if self._cases_on is None:
            return None
        found = Q(database.in_list("id", self._cases_on))
        return found & (self._narrowed("provider", "model") or Q())

    @cached_property
    def cases(self) -> int | None:
        """The number of cases of the chosen flag on the chosen day, in the listed conversations.
        Cases that were repaired later are included.

        None if no day or no flag is chosen, or if the flag's past cases are not counted.
        """
        if self._cases_on is None:
            return None
        listed = self.which.rows().order_by().values_list("id", flat=True)
        return sum(self._cases_on[memory_id] for memory_id in listed)

    @property
    def is_all(self) -> bool:
        """Whether the list has no search and no filter. The chosen flag (`flagged`) does not count
        as a filter.
        """
        plain = OverviewQuery(
            flagged=self.flagged, sort=self.sort, split=self.split, span=self.span
        )
        return replace(self, cursor="") == plain

    @property
    def ordering(self) -> str:
        return f"-{self.sort}"

    @property
    def searches_ids_only(self) -> bool:
        """Whether the search finds only IDs and labels, and no messages. This is so for one or two
        ASCII characters, which nearly every message contains.
        """
        return bool(self.q) and not searches_messages(self.q)

    @property
    def is_short(self) -> bool:
        """Whether the search text has fewer than three characters, too few for the search index."""
        return len(self.q) < SHORTEST

    @property
    def usual_sort(self) -> str:
        """The default order of this list: best match first for a search, newest case first for a
        flag, otherwise by activity.
        """
        return usual_sort(self.flagged, self.q)

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters that differ from the defaults of the overview."""
        plain = OverviewQuery(sort=self.usual_sort)
        values = {name: getattr(self, name) for name in PARAMETERS}
        return {name: value for name, value in values.items() if value != getattr(plain, name)}

    @property
    def query(self) -> str:
        """The query string for the first page of this list, with "?"."""
        return "?" + urlencode(self.parameters)

    @property
    def lab(self) -> str:
        """The URL of the lab, with the search, label and flag of this list. All other filters are
        left out.

        "" if the lab is not installed, if no flag is chosen, or if the flag does not record when
        its cases began.
        """
        if not _newest_at(self.flagged):
            return ""
        chosen = {"q": self.q, "label": self.label, "flagged": self.flagged}
        address = rooms.page_url("lab")
        return address and f"{address}?{urlencode({k: v for k, v in chosen.items() if v})}"

    def link(self, **changes: str) -> str:
        then = replace(self, **changes)
        if "sort" not in changes and self.sort == usual_sort(self.flagged, self.q):
            then = replace(then, sort=usual_sort(then.flagged, then.q))
        return then.query

    @cached_property
    def chips(self) -> list[Chip]:
        """The filter buttons. A button that would find no conversation is left out, unless its
        filter is set. The button `Active today` is always shown.
        """
        return [
            Chip(
                label=label,
                count=self.counts[name, value],
                pressed=self._is(name, value),
                href=self.link(**{name: "" if self._is(name, value) else value}),
                name=name,
            )
            for name, value, label in self._offered
            if (name, value) in ALWAYS_OFFERED
            or self._is(name, value)
            or self.counts[name, value] != 0
        ]

    @property
    def total(self) -> int | None:
        """The number of matching conversations, or None if a search finds too many to count."""
        return self.counts["", ""]

    @property
    def _offered(self) -> list[tuple[str, str, str]]:
        """The name, the value and the label of each filter."""
        filters = [("active", "1", "Active today")]
        filters += [("policy", kind, label) for kind, label in policy_choices()]
        kind, _, limit = self.policy.partition(":")
        if limit:
            words = f"{dict(policy_choices())[kind]}, limit {int(limit):,}"
            filters.append(("policy", self.policy, words))
        filters += [
            ("flagged", flag.name, flag.words)
            for flag in flags_and_parts(self.flagged)
            if self._is("flagged", flag.name)
        ]
        facets = [
            (name, value, _day_words(value) if name == "day" else value)
            for name in FACETS
            if (value := getattr(self, name))
        ]
        return [*filters, *facets]

    @cached_property
    def counts(self) -> Counts:
        """The numbers of conversations that this query would find if a filter had a certain value.
        The keys are the filter's name and this value, such as `("active", "1")`. The key `("", "")`
        has the number for the unchanged query.

        A number is None if a search finds too many to count.
        """
        selections = {
            (name, value): replace(self, **{name: value}).which for name, value, _ in self._offered
        }
        return count_each({("", ""): self.which, **selections})

    def with_counts(self, counts: Counts) -> OverviewQuery:
        """Return a copy of this query whose filters show these counts, so that nothing is counted
        again.
        """
        found = replace(self)
        vars(found)["counts"] = counts  # the value of the property, which then counts nothing
        return found

    def _is(self, name: str, value: str) -> bool:
        return bool(getattr(self, name) == value)


def menus(
    query: OverviewQuery, facets: Facets, flagged: Mapping[str, int], ages: Ages
) -> list[Menu]:
    """Return the menus of the filters that are not set, each with the values that some
    conversations have.

    - `facets` maps the name of a filter to its values. Each value comes with its number of
      conversations, and with the words to show instead of the value, or "".
    - `flagged` has the number of conversations by flag name.
    - `ages` has the times at which conversations were counted.

    `facets` and `flagged` count all conversations. So their numbers are left out if the query has a
    search or a filter.
    """
    is_plain = not any(getattr(query, name) for name in NARROWING)
    ages = ages if is_plain else Ages()
    offered = {
        name: [each for each in query.chips if each.name == name]
        + [
            Chip(words or _day_words(value), known, False, query.link(**{name: value}), name)
            for value, count, words in facets.get(name, ())
            for known in [count if is_plain else None]
        ]
        for names in MENUS.values()
        for name in names
    }
    offered["flagged"] = [
        Chip(each.words, known, False, query.link(flagged=each.name), "flagged")
        for each in flags()
        if (count := flagged.get(each.name))
        for known in [count if is_plain else None]
    ]
    found = (
        Menu(title, [chip for name in names for chip in offered[name]], ages.oldest(names))
        for title, names in MENUS.items()
        if not any(getattr(query, name) for name in names)
    )
    return [each for each in found if each.chips]


def _day_words(value: str) -> str:
    """Return the words of a day or an hour of the filter: `Today`, `Tue 24 Nov`."""
    try:
        at = datetime.fromisoformat(f"{value}:00" if "T" in value else value)
    except ValueError:
        return value
    hour = f", {written(at, 'minute')}" if "T" in value else ""
    return f"{'Today' if is_today(at) else written(at, 'weekday')}{hour}"


def pager(parameters: Mapping[str, str], found: CursorPage[object]) -> dict[str, str | None]:
    """Return the query strings of the previous page (`newer`) and the next page (`older`); None for
    a page that does not exist.
    """
    places = {"newer": found.previous, "older": found.next}
    return {
        name: "?" + urlencode({**parameters, name: cursor}) if cursor else None
        for name, cursor in places.items()
    }


def usual_sort(flagged: str, q: str = "") -> str:
    """Return the default order of a list: best match first for a search, newest case first for a
    flag, otherwise by activity.
    """
    if q:
        return "match"
    return flagged if _newest_at(flagged) else "activity"


def orderings() -> dict[str, str]:
    """Return the possible orders of the overview's list, each with its label."""
    of_flags = {flag.name: flag.words for flag in flags() if flag.cases.newest_at}
    of_columns = {each.name: each.words for each in rooms.columns() if each.sort_by}
    return OWN_ORDERINGS | of_flags | of_columns


def _newest_at(flagged: str) -> bool:
    """Return whether a flag records when its cases began, so that a list can be sorted by it."""
    return any(flag.cases.newest_at for flag in flags() if flag.name == flagged)


def policy_choices() -> list[tuple[str, str]]:
    """Return the values of the policy filter, each with its label."""
    kinds = [(name, kind.label) for name, kind in policy_kinds().items()]
    return [*kinds, (CLIENT, "Client decides")]


def midnight() -> datetime:
    return timezone.localtime().replace(hour=0, minute=0, second=0, microsecond=0)
