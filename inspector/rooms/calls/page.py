"""The page of a model call: tokens by category, changes since the previous call, and a comparison
of the request with memory.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from django.db.models import QuerySet

from chatmemory.conf import configuration
from chatmemory.database import in_list
from chatmemory.exceptions import OversizedMessage
from chatmemory.explain import receipts
from chatmemory.explain.wording import counted
from chatmemory.ledger.redaction import is_redacted
from chatmemory.ledger.windows import read_message
from chatmemory.messages.estimators import count_overhead, estimator_for
from chatmemory.messages.message import AiMessage, ChatMessage
from chatmemory.messages.texts import readable_text
from chatmemory.models import Message, Stay
from chatmemory.reading.windows import MessageView
from chatmemory.recall.cost import Bill
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.transitions import admit
from chatmemory.windows.window import Entry, Window
from inspector.conversation.budget import Segment, segments
from inspector.conversation.looks import STYLES
from inspector.rooms.calls.bodies import ANTHROPIC, GEMINI, RESPONSES
from inspector.rooms.calls.call import Source
from inspector.rooms.calls.comparing import Difference, Place, difference
from inspector.rooms.calls.learning import learned_for
from inspector.rooms.calls.models import ModelCall
from inspector.rooms.calls.reads import RebuiltCall
from inspector.shell.prices import OWN, ChosenPrices

GAP = 4
TEXT = 600  # characters of a message on the page
RAW = 200_000  # characters of a request as JSON, and bytes of a request as a command
TOOLS = 200
LINE = 90
SHOWN = 200  # messages of a request that are shown, the last ones
READ = 2_000  # messages with tool calls, and messages of the history, that a page reads
THOUSAND = 1_000
NEVER_SAID = "not in this history"
UNPRICED = ChosenPrices(provider=OWN)
_PATHS = {
    RESPONSES: "/v1/responses",
    ANTHROPIC: "/v1/messages",
    GEMINI: "/v1beta/models/{model}:generateContent",
}
_HOSTS = {
    "openai": "https://api.openai.com",
    "anthropic": "https://api.anthropic.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
_KEYS = {
    ANTHROPIC: "x-api-key: $ANTHROPIC_API_KEY",
    GEMINI: "x-goog-api-key: $GEMINI_API_KEY",
}
_KINDS = {"system": "system", "result": "results"}


class Tool(NamedTuple):
    """A tool of the request. `tokens` is the size of its definition, which each request sends.
    `calls` is how often the model has called the tool, up to and including the answer of this model
    call.
    """

    name: str
    tokens: int
    calls: int


class Change(NamedTuple):
    """A line of the list that compares a call with the previous call.

    - `kind` is `same` (unchanged), `break` (the shared prefix ends), `off` (no longer sent) or `on`
      (new).
    - `tokens` is the size of the messages or tools that the line is about. A `break` line is about
      the messages after the shared prefix that were in the previous prompt, too.
    - `seq` is the number of the message in history. 0 if the line is not about a single message, or
      if the message is not in history.
    - `glyph` is the mark for the kind of message (see `MessageStyle`), or "".
    """

    kind: str
    text: str
    tokens: int
    seq: int = 0
    glyph: str = ""


class Line(NamedTuple):
    """A line of the calculation that adds up the tokens of a request, or a line about its cost.

    - `text` is the label, and `note` a remark such as `not part of memory`, or "".
    - `tokens` is None if the number is unknown, or if the line has `money` instead.
    - `money` is a formatted amount, or "".
    - `is_sum` marks the total of the lines above.
    """

    text: str
    tokens: int | None = None
    note: str = ""
    is_sum: bool = False
    money: str = ""


class ShownMessage(NamedTuple):
    """A message of the request, at index `place`.

    - `number` is its number in history, or "" if the message is not in history.
    - `role`, `glyph` and `is_code` are the style for its kind (see `MessageStyle`).
    - `can_be_redacted` means that the message is not in history and is not redacted yet.
    - `text` is the beginning of its text; `more` is the number of characters that are not shown.
    - `is_after_break` marks the first message after the shared prefix, if the prefix changed.
    """

    row: MessageView
    place: int
    can_be_redacted: bool
    number: str
    role: str
    glyph: str
    is_code: bool
    text: str
    more: int
    is_after_break: bool


# Long: presents one page; each property is what a part of the page shows.
@dataclass(frozen=True)
class CallPage:
    """Presents the page of a model call. The page compares the call with the previous call
    (`before`). With a `policy`, the page also compares the call with the window that the policy
    would keep. `prices` are the prices in the URL.
    """

    call: RebuiltCall
    before: RebuiltCall | None
    policy: Policy | None
    prices: ChosenPrices = UNPRICED

    @property
    def row(self) -> ModelCall:
        return self.call.row

    @cached_property
    def difference(self) -> Difference | None:
        if self.before is None:
            return None
        return difference(self.before.prompt, self.call.prompt, self.tool_tokens)

    @property
    def fresh(self) -> int | None:
        """Input tokens that were not read from the prompt cache; None if the provider did not count
        input.
        """
        if self.row.input is None:
            return None
        return self.row.input - (self.row.cached or 0)

    @property
    def broke_after(self) -> str:
        """The place at which the shared prefix ends, in words such as "after the tools"; "" without
        a prefix change.
        """
        found = self.difference
        if found is None or not found.is_broken:
            return ""
        if not found.shared:
            return "at the first token"
        if not found.place:
            return "after the tools"
        return f"after {_name(self.call.rows[found.place - 1])}"

    # The budget

    @cached_property
    def tools(self) -> list[Tool]:
        calls = self._calls_of_tools()
        return [Tool(each.name, each.tokens, calls[each.name]) for each in self.call.tools]

    @property
    def called(self) -> list[Tool]:
        return [each for each in self.tools if each.calls]

    @property
    def idle(self) -> list[Tool]:
        """The tools that the model has never called, up to and including the answer of this model
        call.
        """
        return [each for each in self.tools if not each.calls]

    @property
    def shown_tools(self) -> list[Tool]:
        return self.called[:TOOLS]

    @property
    def shown_idle(self) -> list[Tool]:
        return self.idle[:TOOLS]

    @property
    def tool_tokens(self) -> int:
        return sum(each.tokens for each in self.tools)

    @property
    def idle_tokens(self) -> int:
        return sum(each.tokens for each in self.idle)

    def _calls_of_tools(self) -> Counter[str]:
        """Count the calls of each tool in the answers up to this call."""
        rows = self._history().filter(in_list("seq", self._with_calls()))
        own = (row.message for row in self.call.rows if row.seq < 0)
        messages = [*map(read_message, rows), *own, *self.call.answer_messages]
        answers = (each for each in messages if isinstance(each, AiMessage))
        return Counter(
            request.name or ""
            for message in answers
            for request in message.tool_execution_requests
            if request
        )

    def _history(self) -> QuerySet[Message]:
        last = max((row.seq for row in self.call.rows), default=0)
        return Message.objects.filter(memory_id=self.row.memory_id, seq__lte=last)

    def _with_calls(self) -> list[int]:
        stays = Stay.objects.filter(memory_id=self.row.memory_id, has_calls=True)
        return [*stays.order_by("-seq").values_list("seq", flat=True).distinct()[:READ]]

    @cached_property
    def sums(self) -> Mapping[str, int]:
        """The tokens of the prompt by category, such as tools and tool results."""
        found = dict.fromkeys(("tools", "idle", "system", "results", "talk"), 0)
        found["tools"], found["idle"] = self.tool_tokens - self.idle_tokens, self.idle_tokens
        for row in self.call.rows:
            found[_KINDS.get(STYLES[row.type, row.has_calls].glyph, "talk")] += row.tokens
        found["talk"] += self.overhead
        return found

    @property
    def overhead(self) -> int:
        """The number of tokens that chatmemory's estimator adds once to each request, besides
        messages and tools. 0 for a request without messages.
        """
        if not self.call.rows:
            return 0
        return count_overhead(estimator_for(configuration().ESTIMATOR))

    @property
    def counted(self) -> int:
        return sum(self.sums.values())

    @cached_property
    def parts(self) -> list[Segment]:
        looks = {
            "tools": ("Called tools", "call", "b-tool"),
            "idle": ("Tools without a call", "call", "b-idle"),
            "system": ("System message", "system", "b-sys"),
            "results": ("Tool results", "result", "b-res"),
            "talk": ("User and assistant", "user", "b-talk"),
        }
        kinds = [(*looks[name], tokens) for name, tokens in self.sums.items()]
        return segments(kinds, max(1, self.counted), GAP)

    @property
    def words(self) -> str:
        return ", ".join(f"{each.name} {each.percent} percent" for each in self.parts)

    # The changes since the call before

    @cached_property
    def changes(self) -> list[Change]:
        return [*self._changes()] if self.before and self.difference else []

    def _changes(self) -> Iterator[Change]:
        assert self.before is not None
        assert self.difference is not None
        place, before, now = self.difference.place, self.before.rows, self.call.rows
        has_same_tools = self.before.prompt.tools == self.call.prompt.tools
        same = ["tools"] if self.call.tools and has_same_tools else []
        same += [counted(place, "message")] if place else []
        if same:
            text = f"{' and '.join(same).capitalize()}, unchanged"
            yield Change("same", text, self.difference.shared or 0)
        if self.difference.is_broken:
            yield Change(
                "break", "First difference: the shared prefix ends here", self.difference.again
            )
        if not has_same_tools:
            yield Change("on", "changed tool definitions", self.tool_tokens, glyph="call")
        sent_before = {each.seq: each for each in self.before.prompt.places[place:]}
        sent_now = self.call.prompt.places[place:]
        stayed = [each for each in sent_now if each.is_same(sent_before.get(each.seq))]
        seqs = {each.seq for each in stayed}
        yield from (_change("off", row) for row in before[place:] if row.seq not in seqs)
        if stayed:
            tokens = sum(each.tokens for each in stayed)
            yield Change("same", f"{_range(stayed)}, unchanged, but at another position", tokens)
        yield from (_change("on", row) for row in now[place:] if row.seq not in seqs)

    # Memory

    @cached_property
    def lines(self) -> list[Line]:
        """The lines that add up the tokens of the request, and the lines about its cost. With a
        policy, the first lines compare the request with the window that the policy would keep.
        """
        return [*self._lines()]

    def _lines(self) -> Iterator[Line]:
        if self.policy is not None:
            window = self._window_under(self.policy)
            sent = {row.seq: row.tokens for row in self.call.rows}
            yield Line("Messages in memory", sum(window.values()), counted(len(window), "message"))
            put_in = {seq: tokens for seq, tokens in sent.items() if seq not in window}
            left = {seq: tokens for seq, tokens in window.items() if seq not in sent}
            yield Line("Sent, but not in memory", sum(put_in.values()), _numbers(put_in))
            yield Line("In memory, but not sent", -sum(left.values()), _numbers(left))
        else:
            yield Line("Messages", sum(row.tokens for row in self.call.rows))
        if self.call.tools:
            yield Line("Tool definitions", self.tool_tokens, "not part of memory")
        if self.overhead:
            yield Line(receipts.OVERHEAD, self.overhead)
        yield Line(
            "Whole prompt", self.counted, f"our estimate, {configuration().ESTIMATOR}", is_sum=True
        )
        yield Line("Whole prompt, counted by the provider", self.row.input)
        if learned := learned_for(self.row):
            tokens = learned.estimate(self.counted)
            yield Line("Whole prompt, predicted from earlier calls", tokens, learned.words)
        yield from self._costs()

    def _window_under(self, policy: Policy) -> dict[int, int]:
        """Replay the messages up to this call under a policy. Return the tokens of the messages
        that memory would hold, by seq.
        """
        newest = self._history().filter(origin=Message.Origin.SAID).order_by("-seq")[:READ]
        window = Window()
        for message in reversed(newest):
            entry = Entry.of(read_message(message), message.tokens)
            entry.key = message.seq
            with suppress(OversizedMessage):
                admit(window, entry, policy).apply_to(window)
        return {int(str(entry.key)): entry.tokens for entry in window}

    # The cost

    def _costs(self) -> Iterator[Line]:
        """Yield lines with the cost of the prompt and of its prefix change, in tokens at the input
        price. If a price is known, a line with money follows.
        """
        row, chosen = self.row, self.prices.prices
        if row.input is None or chosen.cached is None:
            return
        cost = chosen.weight(Bill(1, row.input, row.cached or 0, row.written or 0))
        yield Line("Cost, in tokens at the input price", round(cost), self.prices.words)
        if row.is_broken and row.again:
            whole = Bill(1, row.again, written=row.again if row.written else 0)
            more = chosen.weight(whole) - chosen.weight(Bill(1, row.again, row.again))
            yield Line("Extra cost of the prefix change", round(more), "by our estimate")
        if self.prices.has_money:
            money = self.prices.money(cost, THOUSAND)
            yield Line(f"Cost of {THOUSAND:,} such prompts", note=self.prices.source, money=money)

    # The request

    @cached_property
    def messages(self) -> list[ShownMessage]:
        place = self.difference.place if self.difference and self.difference.is_broken else -1
        return [
            _shown_message(row, number, is_after_break=number == place)
            for number, row in enumerate(self.call.rows)
            if number >= len(self.call.rows) - SHOWN
        ]

    @property
    def left_out(self) -> int:
        return max(0, len(self.call.rows) - SHOWN)

    @cached_property
    def raw(self) -> str:
        return _shown(self.call.request)

    @property
    def is_raw_cut(self) -> bool:
        return len(self.raw) >= RAW or len(self.raw_answer) >= RAW

    @cached_property
    def raw_answer(self) -> str:
        return _shown(self.call.response)

    @property
    def curl(self) -> str:
        """The request as a curl command without the API key; "" if it is too long for a page."""
        body = self.call.body
        if len(body) > RAW:
            return ""
        key = _KEYS.get(self.row.format, "Authorization: Bearer $OPENAI_API_KEY")
        headers = json.loads(self.row.headers)
        sent = {
            name: value
            for name, value in headers.items()
            if name in ("anthropic-version", "anthropic-beta")
        }
        if self.row.format == ANTHROPIC:
            sent.setdefault("anthropic-version", "2023-06-01")
        host = _HOSTS.get(self.row.provider, f"https://{self.row.provider or 'api.openai.com'}")
        path = _PATHS.get(self.row.format, "/v1/chat/completions")
        lines = [
            f"curl {shlex.quote(host + path.format(model=self.row.model))}",
            f'-H "{key}"',
            "-H 'content-type: application/json'",
            *(f"-H {shlex.quote(f'{name}: {value}')}" for name, value in sent.items()),
            f"-d {shlex.quote(body.decode('utf-8', 'replace'))}",
        ]
        return " \\\n  ".join(lines)

    @property
    def source(self) -> str:
        """Where the request comes from, in words, such as `recorded by the recorder`."""
        match self.row.source:
            case Source.RECORDER:
                return "recorded by the recorder"
            case Source.OPENINFERENCE if self.row.is_exact:
                return "traced by the app"
        return "reconstructed from the trace span" if not self.row.is_exact else "as it was sent"


def _name(row: MessageView) -> str:
    look = STYLES[row.type, row.has_calls]
    if look.glyph == "system":
        return "the system message"
    return _number(row.seq) or f"a message that is {NEVER_SAID}"


def _number(seq: int) -> str:
    """Return the number of a message as text; "" if the message is not in history."""
    return f"#{seq}" if seq > 0 else ""


def _range(places: Sequence[Place]) -> str:
    first, last = places[0].seq, places[-1].seq
    if first == last or min(first, last) < 0:
        return _number(first) if len(places) == 1 and first > 0 else counted(len(places), "message")
    return f"#{first} to #{last}"


def _shown(value: object) -> str:
    """Return the beginning of a value as readable JSON. Characters that UTF-8 cannot encode become
    question marks.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text[:RAW].encode(errors="replace").decode()


def _text(message: ChatMessage) -> str:
    return readable_text(message)


def _change(kind: str, row: MessageView) -> Change:
    text = " ".join(_text(row.message)[: 2 * LINE].split())[:LINE]
    return Change(kind, text, row.tokens, max(row.seq, 0), STYLES[row.type, row.has_calls].glyph)


def _shown_message(row: MessageView, place: int, is_after_break: bool) -> ShownMessage:
    look = STYLES[row.type, row.has_calls]
    text = _text(row.message)
    more = max(0, len(text) - TEXT)
    return ShownMessage(
        row,
        place,
        row.seq < 0 and not is_redacted(row.message),
        _number(row.seq),
        look.role,
        look.glyph,
        look.is_code,
        text[:TEXT],
        more,
        is_after_break,
    )


def _numbers(tokens: Mapping[int, int]) -> str:
    """Return the numbers of some messages in words, and how many of the messages are not in
    history.
    """
    seqs = sorted(seq for seq in tokens if seq > 0)
    shown = ", ".join(f"#{seq}" for seq in seqs[:5])
    words = [f"{shown} and {len(seqs) - 5:,} more" if len(seqs) > 5 else shown] if seqs else []
    if never := len(tokens) - len(seqs):
        words.append(f"{never:,} {NEVER_SAID}")
    return ", ".join(words)


def bars(calls: Sequence[ModelCall]) -> list[tuple[ModelCall, float | None]]:
    """Return each call with the percentage of its input that came from the prompt cache. The
    percentage is None for a call without input tokens.
    """
    return [
        (call, round(100 * (call.cached or 0) / call.input, 1) if call.input else None)
        for call in calls
    ]


def policy_of(memory_policy: Policy | None) -> Policy | None:
    """Return the policy of a conversation if this policy can evict messages, else None. A policy
    cannot evict if its limit only measures (`meters_only`), or if its kind is not installed.
    """
    return memory_policy if can_decide(memory_policy) and not memory_policy.meters_only else None
