"""Presents the page that compares one conversation under several policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

from chatmemory import Policy, policy_kinds, text_of_policy
from chatmemory.advice import Option
from chatmemory.advice.values import DEARER
from chatmemory.explain import wording
from chatmemory.explain.wording import in_unit
from chatmemory.messages.json_values import JsonDict
from chatmemory.recall.comparison import PhraseFate, Replay, replay
from chatmemory.recall.cost import Bill
from chatmemory.recall.facts import examples_first
from chatmemory.recall.kinds import WORDS as KIND_WORDS
from chatmemory.recall.kinds import IncidentKind
from chatmemory.recall.needs import Need
from chatmemory.recall.tallies import Tally
from chatmemory.windows.option_words import option_words
from inspector.conversation.links import conversation_url
from inspector.conversation.looks import glyph
from inspector.rooms.simulation.comparison import ComparedRow, Comparison
from inspector.rooms.simulation.query import ComparisonQuery
from inspector.shell.advice import AdviceCard

USER_REPEATED, CALL_REPEATED = IncidentKind.USER_REPEATED, IncidentKind.CALL_REPEATED
LISTED = 12
NO_LIMIT = "no limit"  # keeps the phrase
STYLES = ("p-a", "p-b", "p-c", "p-d")
COLUMNS_MAX = 400
HEIGHT = 100


class LostFact(NamedTuple):
    """A fact that had left memory before it was needed.

    - `text`: the fact.
    - `source`, `needed`: the numbers of two messages. The first said the fact, and the second
      needed the fact.
    - `source_link`, `needed_link`: the URLs of these two messages.
    - `follow`: the URL that searches this comparison for the fact, at the position just before the
      message `needed`.
    """

    text: str
    follow: str
    source: int
    source_link: str
    needed: int
    needed_link: str


class Value(NamedTuple):
    """A cell of the table of figures: its text, and a note in small type. `css` is "best" for the
    best value of a row, "bad" for a bad value, and "" for other values.
    """

    text: str
    note: str = ""
    css: str = ""


class ValueRow(NamedTuple):
    label: str
    note: str
    values: Sequence[Value]


class ComparedColumn:
    """A policy on the comparison page: its name, its line in the chart, the facts that it lost, and
    its links.

    - `keeps`: the smallest limit with which this policy keeps the searched phrase until the chosen
      position, such as "30 messages". It is "no limit" if no limit keeps the phrase, and "" if
      unknown.
    - `try_it`: the URL that adds this policy with the limit in `keeps` to the comparison. "" if the
      page does not offer this.
    - `can_use`: whether the page offers to set this policy. False for the policy in force.
    """

    def __init__(self, page: ComparePage, css: str, each: Replay, followed: PhraseFate) -> None:
        policy, found, query = each.policy, page.found, page.query
        self.css = css
        self.name = "Everything" if policy is None else policy.label

        self.limit = "" if policy is None else f"{policy.limit:,}"
        self.options = ", ".join(option_words(policy))
        self.text = text_of_policy(policy)
        self.is_current = policy is not None and policy == found.in_force
        self.can_use = not self.is_current and page.offers(each)
        self.better = page.better_than(each)
        sizes = each.prompt_sizes()
        self.tokens = sizes[page.at - 1] if page.at else 0
        self.path = _stepped(sizes, page.top)
        self.limit_path = page.limit_path(policy)
        self.strip = _strip(each, page.at)
        self.remove = query.without(policy) if len(found.policies) > 1 else ""
        self.keeps = _keeps(each, followed)
        least = followed.keeping.limit if followed.keeping else None
        kept = replace(policy, limit=least) if policy and least else None
        is_offered = kept is not None and page.offers(replay(found.history, kept))
        self.try_it = query.plus(kept) if is_offered else ""
        self.lost = list(map(page.lost_fact, islice(examples_first(each.lost), LISTED)))
        self.more_lost = len(each.lost) - len(self.lost)


# Long: presents one page; each property is what a part of the page shows.
class ComparePage:
    """Presents a comparison of policies: its answer, its chart and its tables."""

    def __init__(
        self, found: Comparison, query: ComparisonQuery, card: AdviceCard | None = None
    ) -> None:
        self.card = card
        policies = tuple(each.policy for each in found.policies)
        self.found = found
        at = query.at if query.step is None else found.at
        self.query = replace(query, policies=policies, at=at, step=None)
        self.size = len(found.history)
        self.at = found.at
        self.phrase = found.sought.phrase
        self.top = max(1, sum(found.history.tokens) + found.history.overhead)
        self.columns = len(_columns(self.size))
        # The chosen place in words, and the x of its playhead
        self.place = f"#{found.history.numbers[self.at - 1]:,}" if self.at else "the beginning"
        self.head = self.at * self.columns / self.size if self.size else 0.0
        self.earlier = self.query.link(at=max(0, self.at - 1))
        self.later = self.query.link(at=min(self.size, self.at + 1))
        self.csv = self.query.link(form="csv")
        self.json = self.query.link(form="json")
        self.kinds = [(name, kind.label) for name, kind in policy_kinds().items()]

    @cached_property
    def numbers(self) -> list[JsonDict]:
        """The figures of each policy, for CSV and JSON."""
        return list(map(self._numbers, self.found.policies, self.found.sought.fates))

    def _numbers(self, each: Replay, followed: PhraseFate) -> JsonDict:
        sums, at = each.prompts, followed.forgotten
        cost = self._cost(each)
        return {
            "policy": text_of_policy(each.policy),
            "messages": self.size,
            "recalls": each.recalls,
            "held": each.held,
            "lost": len(each.lost),
            "by_index": each.by_index,
            "user_repeated": each.count_of(USER_REPEATED),
            "call_repeated": each.count_of(CALL_REPEATED),
            "forgotten": each.forgotten,
            "calls": sums.calls,
            "prompt_tokens": sums.tokens,
            "output_tokens": sums.output,
            "cache_breaks": sums.breaks,
            "rebilled_tokens": sums.again,
            "reusable_tokens": sums.reusable,
            "read_tokens": self._bill(each).read,
            "relative_cost": self._relative(each),
            "priced": self.query.prices.prices.priced,
            "cost": None if cost is None else str(cost),
            **{_column(name): count for name, count in sums.refused.items()},
            "phrase": self.phrase or None,
            "phrase_forgotten_at": None if at is None else self.found.history.numbers[at],
            "phrase_kept_by": followed.keeping.limit if followed.keeping else None,
        }

    def _bill(self, each: Replay) -> Bill:
        return each.prompts.bill(self.query.prices.rules)

    def _cost(self, each: Replay) -> Decimal | None:
        """Return what prompts and answers cost; None without an input price."""
        prices = self.query.prices
        prompts = prices.prices.cost(self._bill(each)) if prices.has_money else None
        return None if prompts is None else prompts + each.prompts.output * prices.answer

    def _relative(self, each: Replay) -> float | None:
        """Return the cost of the prompts relative to sending everything."""
        return self.query.prices.prices.relative(self._bill(each), self._everything)

    @cached_property
    def _everything(self) -> Bill:
        return self.found.policies[0].everything.bill(self.query.prices.rules)

    def offers(self, each: Replay) -> bool:
        """Return whether the page may offer to set the policy of a replay, or to compare it.
        Without advice (if `card` is None), the page may offer every policy.

        With advice, the page must not offer the policy if a client decides the window, or if
        another policy is better. A better policy costs less, holds no fewer facts, and causes no
        more repetitions (of facts or tool calls).
        """
        return self.card is None or self.card.offers(self._option(each))

    def better_than(self, each: Replay) -> str:
        """Return the name of a policy that is better than the policy of a replay, such as "A limit
        of 8 messages"; see `offers`. "" if no policy is better, or without advice.
        """
        return self.card.better_than(self._option(each)) if self.card else ""

    def _option(self, each: Replay) -> Option:
        repeated = map(each.count_of, (USER_REPEATED, CALL_REPEATED))
        share = each.held / each.recalls if each.recalls else 1.0
        cost = self._relative(each)
        return Option(
            each.policy,
            Tally(each.held, *repeated),
            each.recalls,
            share=share,
            cost=1.0 if cost is None else cost,
        )

    # The answer

    @property
    def answer(self) -> tuple[str, str]:
        """A sentence in two parts about the searched phrase, such as "A limit of 30 messages or 800
        tokens" and "still holds “order 7” at …". For each compared policy, the first part has the
        smallest limit that keeps the phrase. The first part is "No limit" if no limit keeps the
        phrase.

        Both parts are "" if no message has the phrase, or if it is unknown which limits keep it.
        """
        kept = [each.keeps for each in self.policies if each.keeps]
        if not (self.phrase and self.found.sought.mentions and kept):
            return "", ""
        limits = " or ".join(each for each in dict.fromkeys(kept) if each != NO_LIMIT)
        which = f"A limit of {limits}" if limits else "No limit"
        return which, f"still holds “{self.phrase}” at {self.place}."

    @property
    def offer(self) -> str:
        """The URL that adds to this comparison a policy whose limit keeps the searched phrase. It
        is the first `try_it` of the compared policies, or "".
        """
        if not (self.phrase and self.found.sought.mentions):
            return ""
        return next((each.try_it for each in self.policies if each.try_it), "")

    @property
    def with_pick(self) -> str:
        """The URL that adds the advised policy (`card.advice.pick`) to this comparison. "" if no
        policy is advised, or if the advised policy is compared already. Also "" if the advice is to
        send everything.
        """
        pick = self.card.advice.pick if self.card else None
        return self.query.plus(pick.policy) if pick else ""

    # The policies

    @cached_property
    def policies(self) -> list[ComparedColumn]:
        found = zip(STYLES, self.found.policies, self.found.sought.fates, strict=False)
        return [ComparedColumn(self, *each) for each in found]

    def lost_fact(self, use: Need) -> LostFact:
        numbers = self.found.history.numbers
        source, needed = numbers[use.mention], numbers[use.position]
        return LostFact(
            use.fact,
            self.query.link(at=use.position, phrase=use.fact),
            source,
            self._message_link(source),
            needed,
            self._message_link(needed, find=use.fact),
        )

    def _message_link(self, number: int, **more: str) -> str:
        return conversation_url(self.query.memory_id, msg=number, **more)

    # The chart

    @property
    def history_path(self) -> str:
        """The SVG path of the area in the chart that stands for the whole history."""
        history = self.found.history
        sums = [tokens + history.overhead for tokens in accumulate(history.tokens)]
        path = _stepped(sums, self.top)
        return f"{path}V{HEIGHT}Z" if path else ""

    def limit_path(self, policy: Policy | None) -> str:
        """Return the SVG path of a policy's limit. "" if the limit does not count tokens, or is
        outside the chart.
        """
        if policy is None or policy.unit != "tokens" or policy.limit > self.top:
            return ""
        return f"M0 {HEIGHT - policy.limit * HEIGHT / self.top:.2f}H{self.columns}"

    # The table

    @property
    def rows(self) -> Iterator[ValueRow]:
        policies, ranked = self.found.policies, self._ranked
        recalls, calls = policies[0].recalls, policies[0].prompts.calls
        yield ranked(
            "Facts held",
            f"of {wording.counted(recalls, 'fact')} needed again",
            lambda p: p.held,
            max,
        )
        note = (
            "facts that left memory before they were needed; "
            "values of tool calls, such as membership=gold, are not counted"
        )
        yield ranked("Facts lost", note, lambda p: len(p.lost))
        if any(each.departures.indexes for each in policies):
            named = "lost facts whose term the index lists, without the sentence about the term"
            yield ranked("Facts named by the index", named, lambda p: p.by_index, max)
        again = "messages that repeat a fact that left memory"
        yield ranked(KIND_WORDS[USER_REPEATED].title, again, lambda p: p.count_of(USER_REPEATED))
        if any(each.count_of(CALL_REPEATED) for each in policies):
            again = "tool calls repeated after their result left memory"
            yield ranked(
                KIND_WORDS[CALL_REPEATED].title, again, lambda p: p.count_of(CALL_REPEATED)
            )
        yield ranked(
            "Messages that left memory",
            f"of {wording.counted(self.size, 'message')}",
            lambda p: p.forgotten,
        )
        per_call = f"average of {wording.counted(calls, 'model call')}"
        yield ranked("Prompt tokens per model call", per_call, lambda p: round(p.prompts.per_call))
        in_all = "of all model calls together"
        yield ranked("Prompt tokens in total", in_all, lambda p: p.prompts.tokens)
        yield self._relative_costs()
        if self.query.prices.has_money:
            yield self._costs()
        note = "prompts that do not start with the previous prompt"
        yield ranked("Prompts with a changed prefix", note, lambda p: p.prompts.breaks)
        note = "in the previous prompt too, but after the first difference"
        yield ranked("Tokens resent after a prefix change", note, lambda p: p.prompts.again)
        prompts = [each.prompts for each in policies]
        shares = [wording.percent(each.reusable, each.tokens) or "no prompts" for each in prompts]
        yield ValueRow(
            "Tokens in the unchanged prefix", "of all prompt tokens", list(map(Value, shares))
        )
        read = [(self._bill(each).read, each.prompts.tokens) for each in policies]
        cells = [Value(wording.percent(*each) or "no prompts") for each in read]
        yield ValueRow("Cached input tokens", self.query.prices.words, cells)
        for name in prompts[0].refused:
            yield _refused(name, [each.refused[name] for each in prompts], calls)
        if self.phrase:
            if self.found.sought.mentions:
                yield self._remembered()
            yield self._phrase_forgotten()
            kept = [Value(each.keeps or "—") for each in self.policies]
            yield ValueRow("Smallest limit that keeps the phrase", f"at {self.place}", kept)

    def _ranked(
        self,
        label: str,
        note: str,
        value_of: Callable[[Replay], int],
        choose: Callable[[list[int]], int] = min,
    ) -> ValueRow:
        """Return a row of numbers with the best marked. If all are equal, none is marked."""
        values = list(map(value_of, self.found.policies))
        best, is_close = choose(values), len(set(values)) < 2
        cells = [Value(f"{n:,}", css="" if is_close or n != best else "best") for n in values]
        return ValueRow(label, note, cells)

    def _costs(self) -> ValueRow:
        prices = self.query.prices
        costs = (self._cost(each) or Decimal(0) for each in self.found.policies)
        cells = [Value(f"{prices.currency}{cost * 1_000:,.2f}") for cost in costs]
        return ValueRow("Cost of 1,000 such conversations", prices.source_words, cells)

    def _relative_costs(self) -> ValueRow:
        """Return the row of relative costs: sending everything costs 1.00."""
        prices = self.query.prices
        costs = [self._relative(each) for each in self.found.policies]
        least = min((cost for cost in costs if cost is not None), default=None)
        cells = [
            Value(
                "no prompts" if cost is None else f"{cost:.2f}",
                css="bad" if cost and cost >= DEARER else "best" if cost == least != 1 else "",
            )
            for cost in costs
        ]
        is_priced = prices.prices.priced == "cache"
        name = "Cost of the prompts" if is_priced else "Tokens of the prompts"
        note = "relative to sending everything" + (f"; {prices.words}" if is_priced else "")
        return ValueRow(name, note, cells)

    def _remembered(self) -> ValueRow:
        """Return the row that says by which message each policy still remembers the phrase at the
        chosen position.
        """
        numbers, mentions = self.found.history.numbers, self.found.sought.mentions
        cells = []
        for each in self.found.policies:
            holding = [numbers[place] for place in mentions if each.has(place, self.at)]
            cells.append(Value(f"yes, in #{holding[-1]:,}", css="best") if holding else Value("no"))
        return ValueRow("Is the phrase still in memory?", f"at {self.place}", cells)

    def _phrase_forgotten(self) -> ValueRow:
        numbers, mentions = self.found.history.numbers, self.found.sought.mentions
        is_part = self.found.is_part
        note = f"not said in the latest {self.size:,} messages" if is_part else "nobody said it"
        if mentions:
            note = f"said in #{numbers[mentions[0]]:,}"
        cells = [self._forgotten_at(each.forgotten) for each in self.found.sought.fates]
        return ValueRow(f"“{self.phrase}” left memory", note, cells)

    def _forgotten_at(self, at: int | None) -> Value:
        if not self.found.sought.mentions:
            return Value("not said here" if self.found.is_part else "not said")
        if at is None:
            return Value("never", "still in memory at the end", "best")
        return Value(f"at #{self.found.history.numbers[at]:,}")

    # The matrix

    @property
    def matrix(self) -> Iterator[tuple[ComparedRow, str, list[str]]]:
        """Yield a tuple for each message in `Comparison.rows`: the row, the icon of the message,
        and a text for each policy, such as "left at #12". The text is "" if the message is in
        memory.
        """
        for row in self.found.rows:
            entry = self.found.history.entries[row.position]
            places = [self._where(each, row.position) for each in self.found.policies]
            yield row, glyph(entry.type, entry.has_calls), places

    def _where(self, each: Replay, position: int) -> str:
        """Return what happened to a message under a policy, such as "left at #12". "" if the
        message is in memory.
        """
        if each.has(position, self.at):
            return ""
        if each.ignores(position):
            return "ignored"
        numbers = self.found.history.numbers
        if each.has_stub(position, self.at):
            return f"cleared since #{numbers[each.departures.of_texts[position]]:,}"
        return f"left at #{numbers[each.departures.at[position]]:,}"


def _column(provider: str) -> str:
    return f"refused_by_{provider.lower().replace(' ', '_')}"


def _refused(provider: str, refused: Sequence[int], calls: int) -> ValueRow:
    fine = Value("none rejected" if calls else "no prompts")
    cells = [
        Value(f"{number:,} rejected", f"of {wording.counted(calls, 'prompt')}", "bad")
        if number
        else fine
        for number in refused
    ]
    return ValueRow(provider, "prompts that the provider would reject", cells)


def _keeps(each: Replay, followed: PhraseFate) -> str:
    """Return in words the smallest limit with which a policy's kind keeps the phrase."""
    keeping = followed.keeping
    if each.policy is None or keeping is None:
        return ""
    if keeping.limit is None:
        return NO_LIMIT
    about = "about " if keeping.tried_every > 1 else ""
    return f"{about}{in_unit(keeping.limit, each.policy)}"


def _columns(size: int) -> list[range]:
    """Return the positions of the messages in each column of a chart: several messages a column for
    a long history.
    """
    count = min(size, COLUMNS_MAX)
    edges = [place * size // count for place in range(count + 1)] if count else [0]
    return [range(first, last) for first, last in pairwise(edges)]


def _stepped(values: Sequence[int], top: int) -> str:
    """Return an SVG path with one step for each column. A column shows the largest value of its
    messages.
    """
    heights = [max(values[place] for place in each) for each in _columns(len(values))]
    parts = [f"V{HEIGHT - value * HEIGHT / top:.2f}H{x}" for x, value in enumerate(heights, 1)]
    return f"M0 {HEIGHT}{''.join(parts)}" if parts else ""


def _strip(each: Replay, at: int) -> str:
    """Return an SVG path over the columns whose messages are in the window at position `at`."""
    drawn: list[list[int]] = []
    for x, places in enumerate(_columns(len(each.history))):
        if not any(each.has(place, at) for place in places):
            continue
        if drawn and drawn[-1][1] == x:
            drawn[-1][1] = x + 1
        else:
            drawn.append([x, x + 1])
    return "".join(f"M{first} 5H{last}" for first, last in drawn)
