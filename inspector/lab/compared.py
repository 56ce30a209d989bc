"""The page of one conversation, stored or of a file, under several policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from chatmemory import Policy as LimitedPolicy
from chatmemory import explain, policy_kinds, text_of_policy
from chatmemory.queries import Compared, ComparedRow, Comparison, Followed, Use
from inspector.conversation.glyphs import glyph
from inspector.conversation.links import conversation_url
from inspector.lab import drawing
from inspector.lab.asked import Asked
from inspector.lab.shares import percent

LISTED = 12
STYLES = ("p-a", "p-b", "p-c", "p-d")


@dataclass(frozen=True)
class Fact:
    """A lost recall: `follow` follows the fact, just before it was needed.

    Only messages of a stored conversation have links.
    """

    text: str
    follow: str
    said: int
    said_link: str
    needed: int
    needed_link: str


@dataclass(frozen=True)
class Value:
    """A cell of the table; `css` marks the best of its row, and what is bad."""

    text: str
    note: str = ""
    css: str = ""


@dataclass(frozen=True)
class Row:
    label: str
    note: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Policy:
    """One policy of the page, with its line in the chart."""

    name: str
    short: str
    limit: str
    options: str
    css: str
    text: str
    is_current: bool
    tokens: int
    path: str
    limit_path: str
    strip: str
    remove: str
    keeps: str
    try_it: str
    lost: tuple[Fact, ...]
    more_lost: int


class ComparePage:
    def __init__(self, found: Comparison, asked: Asked) -> None:
        self.found = found
        self.asked = asked.with_policies([each.policy for each in found.policies])
        self.is_stored = bool(asked.memory_id)
        self.size = len(found.history)
        self.at = found.at
        self.phrase = found.phrase
        self.top = drawing.top_of(found)
        self.columns = len(drawing.columns(self.size))

    @property
    def head(self) -> float:
        """The x of the playhead."""
        return self.at * self.columns / self.size if self.size else 0

    @property
    def said_path(self) -> str:
        return drawing.said(self.found)

    @cached_property
    def policies(self) -> tuple[Policy, ...]:
        return tuple(map(self._policy, range(len(self.found.policies))))

    def _policy(self, place: int) -> Policy:
        each, followed = self.found.policies[place], self.found.followed[place]
        tokens = self._tokens[place]
        policy, text = each.policy, text_of_policy(each.policy)
        keeping = followed.keeping
        least = _text_with(policy, keeping.limit) if keeping else ""
        facts = tuple(map(self._fact, each.lost[:LISTED]))
        return Policy(
            name="Everything" if policy is None else policy.label,
            short="All" if policy is None else policy.short_unit.capitalize(),
            limit="" if policy is None else f"{policy.limit:,}",
            options=", ".join(explain.option_words(policy)),
            css=STYLES[place],
            text=text,
            is_current=policy is not None and policy == self.found.in_force,
            tokens=tokens[self.at - 1] if self.at else 0,
            path=drawing.stepped(tokens, self.top),
            limit_path=drawing.limit_line(each, self.top, self.columns),
            strip=drawing.strip(each, self.at),
            remove=self.asked.without(text) if len(self.found.policies) > 1 else "",
            keeps=_keeps(each, followed),
            try_it=self.asked.plus(least) if least and least not in self.asked.policies else "",
            lost=facts,
            more_lost=len(each.lost) - len(facts),
        )

    @cached_property
    def _tokens(self) -> list[list[int]]:
        return [each.prompt_sizes() for each in self.found.policies]

    def _fact(self, use: Use) -> Fact:
        numbers = self.found.history.numbers
        said, needed = numbers[use.mention], numbers[use.position]
        return Fact(
            use.fact,
            self.asked.link(at=use.position, phrase=use.fact),
            said,
            self._message(said),
            needed,
            self._message(needed, find=use.fact),
        )

    def _message(self, number: int, **more: str) -> str:
        memory_id = self.asked.memory_id
        return conversation_url(memory_id, msg=number, **more) if memory_id else ""

    # The table

    @property
    def rows(self) -> Iterator[Row]:
        compared = self.found.policies
        calls = compared[0].prompts.calls if compared else 0
        recalls = compared[0].recalls if compared else 0
        again = "facts that were forgotten"
        broken = "prompts that do not begin like the one before"
        held = [each.held for each in compared]
        yield self._numbers("Facts still held", f"of {recalls:,} used again", held, max)
        lost = [len(each.lost) for each in compared]
        yield self._numbers("Facts lost", "had left before", lost)
        repeated = [len(each.said_again) for each in compared]
        yield self._numbers("Said again by the user", again, repeated)
        forgotten = [each.forgotten for each in compared]
        yield self._numbers("Messages forgotten", f"of {self.size:,} said", forgotten)
        per_call = [round(each.prompts.per_call) for each in compared]
        yield self._numbers("Prompt tokens per call", f"of {calls:,} calls", per_call)
        tokens = [each.prompts.tokens for each in compared]
        yield self._numbers("Prompt tokens in all", "of all calls together", tokens)
        yield self._cost()
        breaks = [each.prompts.breaks for each in compared]
        yield self._numbers("Prompt-cache breaks", broken, breaks)
        yield self._reusable()
        yield from self._providers(calls)
        if self.phrase:
            yield self._forgotten()
            yield self._kept_by()

    def _numbers(
        self, label: str, note: str, values: list[int], choose: Callable[..., int] = min
    ) -> Row:
        best = choose(values, default=0)
        is_close = len(set(values)) < 2
        cells = (Value(f"{n:,}", css="" if is_close or n != best else "best") for n in values)
        return Row(label, note, tuple(cells))

    def _cost(self) -> Row:
        prices = self.asked.prices
        cells = []
        for each in self.found.policies:
            sums = each.prompts
            cost = prices.cost(sums.tokens, sums.reusable, sums.output)
            cells.append(Value(prices.words(cost, 1_000) or "no price given"))
        return Row("Cost of 1,000 such conversations", prices.said, tuple(cells))

    def _reusable(self) -> Row:
        prompts = [each.prompts for each in self.found.policies]
        return Row(
            "Reusable tokens",
            "of prompts that begin alike; minimums of providers are ignored",
            tuple(Value(percent(each.reusable, each.tokens) or "no prompts") for each in prompts),
        )

    def _providers(self, calls: int) -> Iterator[Row]:
        names = self.found.policies[0].prompts.refused if self.found.policies else {}
        for name in names:
            refused = [each.prompts.refused[name] for each in self.found.policies]
            cells = (
                Value(f"{number:,} refused", f"of {calls:,}", "bad") if number else Value("accepts")
                for number in refused
            )
            yield Row(name, "would accept each prompt?", tuple(cells))

    def _forgotten(self) -> Row:
        numbers = self.found.history.numbers
        cells = []
        for followed in self.found.followed:
            if not self.found.mentions:
                cells.append(Value("not said here" if self.found.is_part else "never said"))
            elif followed.forgotten is None:
                cells.append(Value("never", "kept to the end", "best"))
            else:
                cells.append(Value(f"at #{numbers[followed.forgotten]:,}"))
        first = numbers[self.found.mentions[0]] if self.found.mentions else None
        unsaid = "nobody said it"
        if self.found.is_part:
            unsaid = f"not said in the latest {len(numbers):,} messages"
        note = f"said in #{first:,}" if first else unsaid
        return Row(f"“{self.phrase}” first forgotten", note, tuple(cells))

    def _kept_by(self) -> Row:
        pairs = zip(self.found.policies, self.found.followed, strict=True)
        cells = (Value(_keeps(each, followed) or "—") for each, followed in pairs)
        return Row("Smallest limit that still holds it", f"at {self.place}", tuple(cells))

    # The matrix

    @property
    def place(self) -> str:
        """The chosen place in words."""
        return f"#{self.found.history.numbers[self.at - 1]:,}" if self.at else "the beginning"

    @property
    def matrix(self) -> Iterator[tuple[ComparedRow, str, list[str]]]:
        """The messages before the place: the row, its glyph, and where each policy has it."""
        entries = self.found.history.entries
        for row in self.found.rows:
            entry = entries[row.position]
            yield (
                row,
                glyph(entry.type, entry.has_calls),
                [self._where(each, row.position) for each in self.found.policies],
            )

    def _where(self, each: Compared, position: int) -> str:
        """Return an empty text for a message in the window, else when it left, or that it never
        came in.
        """
        if each.has(position, self.at):
            return ""
        if each.ignores(position):
            return "ignored"
        return f"left at #{self.found.history.numbers[each.left[position]]:,}"

    # Links

    @property
    def earlier(self) -> str:
        return self.asked.link(at=max(0, self.at - 1))

    @property
    def later(self) -> str:
        return self.asked.link(at=min(self.size, self.at + 1))

    @property
    def csv(self) -> str:
        return self.asked.link(form="csv")

    @property
    def json(self) -> str:
        return self.asked.link(form="json")

    @property
    def kinds(self) -> list[tuple[str, str]]:
        return [(name, kind.label) for name, kind in policy_kinds().items()]

    @property
    def answer(self) -> tuple[str, str]:
        """The sentence on top: which limit still holds the phrase, or is enough for most facts.

        The first part is the limit.
        """
        if self.phrase and self.found.mentions:
            pairs = zip(self.found.policies, self.found.followed, strict=True)
            kept = [words for each, followed in pairs if (words := _keeps(each, followed))]
            if kept:
                limits = " or ".join(dict.fromkeys(kept))
                return limits, f"still {_hold(limits)} “{self.phrase}” at {self.place}."
        offered = self.found.offered
        if offered is None:
            return "No limit", "loses a fact here: the assistant used none of them again."
        limit = explain.in_unit(offered.limit, offered)
        return limit, f"{_hold(limit)} 95 % of what the assistant needed here."

    @property
    def offer(self) -> str:
        """The address with the limit of the answer, if it is not among the policies."""
        if self.phrase and self.found.mentions:
            return next((each.try_it for each in self.policies if each.try_it), "")
        text = text_of_policy(self.found.offered) if self.found.offered else ""
        return self.asked.plus(text) if text and text not in self.asked.policies else ""


def _text_with(policy: LimitedPolicy | None, limit: int | None) -> str:
    """Return a policy as text with another limit; empty without one of both."""
    return text_of_policy(replace(policy, limit=limit)) if policy and limit else ""


def _hold(limits: str) -> str:
    """Return the verb for limits in words: 1 message holds, 3 messages hold."""
    return "hold" if limits.endswith("s") else "holds"


def _keeps(each: Compared, followed: Followed) -> str:
    """Return the smallest limit of a policy's kind that holds the phrase, in words."""
    keeping = followed.keeping
    if each.policy is None or keeping is None:
        return ""
    if keeping.limit is None:
        return "no limit"
    about = "about " if keeping.tried_every > 1 else ""
    return f"{about}{explain.in_unit(keeping.limit, each.policy)}"
