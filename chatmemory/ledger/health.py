"""The health of a window: which rules of providers it breaks, kept up to date at constant cost.

An add does not read the window. What the linter needs of it is kept beside it: a *sketch*. A block
of it is a message of the user or the assistant with the results and system messages behind it; only
the last block is in the sketch, and those in which a call or a result is at fault. The linter's
rules about calls and results are asked of the sketch, and those about one message when it arrives.
What the window begins with, and how many system and user messages it has, are counted.

Two rules are left to the linter: roles that repeat, and ids of calls that are used again in another
message. A second result of a call that was answered long ago counts as one without its call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import dropwhile
from typing import Any, NamedTuple

from chatmemory.core.codec import load_json
from chatmemory.core.exceptions import InvalidMessage
from chatmemory.core.lint import PROVIDERS, RULES, Rule, Sent, Turn
from chatmemory.core.lint.rules import findings
from chatmemory.core.lint.turns import OPENAI
from chatmemory.core.messages import (
    TYPES,
    AiMessage,
    ChatMessage,
    MessageType,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
)
from chatmemory.linting import turns_of

BITS = {name: 1 << n for n, name in enumerate(PROVIDERS)}
SHORT = "shorter_than_a_turn"
OF_BEGINNING = ("first_not_user", "system_in_middle", "several_systems", "call_after_model")
OF_CALLS = ("orphan_result", "dangling_call", "results_apart", "duplicate_result")
OF_NEIGHBOURS = ("call_after_model", "lone_reasoning")
OF_ONE = (
    *("duplicate_call_id", "missing_call_id", "bad_arguments", "empty_content", "null_content"),
    *("unsupported_image", "unsupported_file", "media_left_out", "developer_role"),
)
KEPT = frozenset((*OF_BEGINNING, *OF_CALLS, *OF_NEIGHBOURS, *OF_ONE))
FAULTY_BLOCKS = 24  # the newest ones are in the sketch
PRUNED_EVERY = 50  # messages of a window that is read

_ARRIVING: Sequence[Rule] = [RULES[name] for name in (*OF_ONE, *OF_NEIGHBOURS)]
_EMPTY: Sequence[Rule] = [RULES["empty_content"]]
_NEIGHBOURS: Sequence[Rule] = [RULES[name] for name in OF_NEIGHBOURS]
_BEGINNING: Sequence[Rule] = [RULES[name] for name in OF_BEGINNING]
_SYSTEM, _USER, _AI = MessageType.SYSTEM, MessageType.USER, MessageType.AI
_RESULT = MessageType.TOOL_EXECUTION_RESULT
_CALL = "CALL"
_REASONING = "reasoning"


class Fault(NamedTuple):
    """A rule that a window breaks without a pause since a step. `refused` and `mishandled` are
    providers as bits; `seq` is the newest message at fault, 0 for the window as a whole.
    """

    rule: str
    refused: int
    mishandled: int
    since: int
    seq: int
    is_of_sketch: bool = False


class Beginning(NamedTuple):
    """How many system messages lead a window, and what comes first behind them: a type of message,
    CALL, or nothing. `seq` is its number.
    """

    leading: int = 0
    first: str = ""
    seq: int = 0

    @classmethod
    def of(cls, leading: int, type: MessageType, has_calls: bool, seq: int) -> Beginning:
        return cls(leading, _CALL if has_calls else type.value, seq)


AT_NOTHING = Beginning()


class Seen(NamedTuple):
    """A message in the sketch: its turn as most providers get it, and as some others do."""

    seq: int
    turn: Turn
    others: Mapping[str, Turn]

    def sent_to(self, provider: str) -> Turn:
        return self.others.get(provider, self.turn)


Block = tuple[Seen, ...]


class Health(NamedTuple):
    """What an add needs to know of the window before it, and the faults of the window. It has had
    some since `ill_step`. `waiting_call` is the one at the window's end that awaits results.
    """

    blocks: tuple[Block, ...] = ()
    beginning: Beginning = AT_NOTHING
    systems: int = 0
    users: int = 0
    faults: tuple[Fault, ...] = ()
    ill_step: int = 0
    waiting_call: int | None = None

    # As JSON

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Health:
        """Read what `stored` wrote; an empty object is the health of an empty window."""
        if not stored:
            return HEALTHY
        return cls(
            tuple([tuple([_seen(each) for each in block]) for block in stored["blocks"]]),
            Beginning(*stored["beginning"]),
            stored["systems"],
            stored["users"],
            tuple(Fault(*each) for each in stored.get("faults", ())),
            stored.get("ill_step", 0),
        )

    def stored(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "blocks": [[_written(each) for each in block] for block in self.blocks],
            "beginning": list(self.beginning),
            "systems": self.systems,
            "users": self.users,
        }
        if self.faults:
            found["faults"] = [list(each) for each in self.faults]
            found["ill_step"] = self.ill_step
        return found

    # What it says

    @property
    def rules(self) -> list[str]:
        return sorted({each.rule for each in self.faults})

    @property
    def problems(self) -> str:
        """The rules that the window breaks, each between commas."""
        return f",{','.join(self.rules)}," if self.faults else ""

    @property
    def known(self) -> set[int]:
        """The messages in the sketch, and those at fault."""
        return {seen.seq for block in self.blocks for seen in block} | {
            each.seq for each in self.faults if each.seq
        }

    @property
    def refused_by(self) -> int:
        """The providers that refuse the window, as bits."""
        found = 0
        for each in self.faults:
            found |= each.refused
        return found

    # What changes it

    def with_text(self, seq: int, message: ChatMessage) -> Health | None:
        """Return the health with a text at the end of a window, if that is all that changes, as in
        most adds.

        Nothing is at fault, and of what is remembered there is one message without calls. None for
        others, of which `with_message` and `judged` tell.
        """
        if self.faults or not self._has_said or len(self.blocks) != 1 or not _is_text(message):
            return None
        if not self.users or _of_beginning(self.beginning, self.systems):
            return None
        (block,) = self.blocks
        if len(block) != 1 or _is_paired(block[0]):
            return None
        seen = Seen(seq, Turn(0, seq, message.type), {})
        users = self.users + (message.type is _USER)
        return self._replace(blocks=((seen,),), users=users)

    def with_message(self, seq: int, message: ChatMessage, step: int, at_head: bool) -> Health:
        """Return the health with a message at the end, or a system message at the head."""
        if message.type is MessageType.CUSTOM:
            return self
        beginning, is_system = self.beginning, message.type is _SYSTEM
        if is_system and (at_head or not beginning.first):
            beginning = beginning._replace(leading=beginning.leading + 1)
        elif not is_system and not beginning.first:
            has_calls = message.has_tool_execution_requests
            beginning = Beginning.of(beginning.leading, message.type, has_calls, seq)
        blocks, faults = self.blocks, self.faults
        if not at_head:
            blocks, faults = self._with_arrival(seq, message, step)
        return Health(
            blocks,
            beginning,
            self.systems + is_system,
            self.users + (message.type is _USER),
            faults,
        )

    @property
    def _has_said(self) -> bool:
        return bool(self.beginning.first)

    def _with_arrival(
        self, seq: int, message: ChatMessage, step: int
    ) -> tuple[tuple[Block, ...], tuple[Fault, ...]]:
        seen, block = _seen_in(seq, message), self.blocks[-1] if self.blocks else ()
        last, faults = block[-1].seq if block else 0, self.faults
        if faults:
            faults = tuple(
                each for each in faults if each.rule != "lone_reasoning" or each.seq != last
            )
        if found := _found_at_end(block, seen, message, self._has_said):
            faults = _merged(faults, found, step)
        if _begins_block(block, seen):
            return (*self.blocks, (seen,)), faults
        return (*self.blocks[:-1], (*_shortened(block, seen), seen)), faults

    def without(
        self, gone: Collection[int], types: Iterable[MessageType], beginning: Beginning
    ) -> Health:
        """Return the health without messages, of these types, that were the window's oldest."""
        types = list(types)
        blocks = [tuple([each for each in block if each.seq not in gone]) for block in self.blocks]
        if _SYSTEM in types:
            blocks = [_without_repeated_words(block) for block in blocks]
        return Health(
            tuple(filter(None, blocks)),
            beginning,
            self.systems - types.count(_SYSTEM),
            self.users - types.count(_USER),
            tuple(each for each in self.faults if not each.seq or each.seq not in gone),
        )

    def judged(self, step: int, has_left: bool, before: Health) -> Health:
        """Return the health with the faults of the sketch and of the beginning. A fault that was
        there `before` began then.
        """
        sketch = self.blocks
        if self.systems:
            sketch = tuple(filter(None, (tuple(dropwhile(_is_system, each)) for each in sketch)))
        paired = _found_in_sketch(sketch)
        found: Found = {**_of_beginning(self.beginning, self.systems)}
        if has_left and self._has_said and not self.users:
            found[SHORT, 0, 0] = 0
        if not found and not self.faults and paired is NOTHING_PAIRED:
            return Health(sketch[-1:], self.beginning, self.systems, self.users)
        seqs = [seen.seq for block in sketch for seen in block]
        found |= {key: seqs[place] for key, place in paired.found.items()}
        # A call that is now the first message is at fault for that
        first = ("call_after_model", self.beginning.seq)
        faults = [
            each for each in self.faults if not each.is_of_sketch and (each.rule, each.seq) != first
        ]
        faults += [Fault(*key, step, seq, is_of_sketch=True) for key, seq in found.items()]
        if faults:
            since = {each.rule: each.since for each in sorted(before.faults, key=_latest_first)}
            faults = [each._replace(since=since.get(each.rule, each.since)) for each in faults]
        kept = [block for n, block in enumerate(sketch[:-1]) if n in paired.faulty]
        return Health(
            (*kept[-FAULTY_BLOCKS:], *sketch[-1:]),
            self.beginning,
            self.systems,
            self.users,
            tuple(sorted(faults)),
            (before.ill_step or step) if faults else 0,
            None if paired.waiting is None else seqs[paired.waiting],
        )


def _latest_first(fault: Fault) -> int:
    return -fault.since


HEALTHY = Health()


class _Paired(NamedTuple):
    """What is wrong between calls and results, with the place in a sketch of the newest message at
    fault; the blocks with a fault; and the place of the call that waits at the end.
    """

    found: Mapping[tuple[str, int, int], int]
    faulty: Collection[int]
    waiting: int | None


NOTHING_PAIRED = _Paired({}, (), None)


def without_times(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored health without the steps at which its faults began."""
    faults = [[*each[:3], 0, *each[4:]] for each in stored.get("faults", ())]
    return {**stored, "faults": sorted(faults), "ill_step": 0}


Found = dict[tuple[str, int, int], int]


def examined(
    entries: Iterable[tuple[int, ChatMessage]], step: int, has_left: bool, before: Health
) -> Health:
    """Return the health of a whole window, of which all messages are read."""
    health = HEALTHY
    for n, (seq, message) in enumerate(entries, 1):
        health = health.with_message(seq, message, step, at_head=False)
        if n % PRUNED_EVERY == 0:
            health = health.judged(step, has_left, before)
    return health.judged(step, has_left, before)


def _merged(kept: Iterable[Fault], found: Found, step: int) -> tuple[Fault, ...]:
    """Return faults of single messages, of which the newest message is kept for each."""
    faults = {(*each[:3], each.is_of_sketch): each for each in kept}
    for key, seq in found.items():
        known = faults.get((*key, False))
        faults[*key, False] = Fault(*key, known.since if known else step, seq)
    return tuple(faults.values())


# Asking the linter


def _by_rule(found: Iterable[tuple[str, str, str, int]]) -> Found:
    """Gather findings of all providers: a rule, its severity, a provider and the message."""
    refused: dict[tuple[str, int], list[int]] = {}
    for rule, severity, provider, seq in found:
        bits = refused.setdefault((rule, seq), [0, 0])
        bits[severity != "refused"] |= BITS[provider]
    gathered: Found = {}
    for (rule, seq), (no, otherwise) in refused.items():
        gathered[rule, no, otherwise] = max(seq, gathered.get((rule, no, otherwise), 0))
    return gathered


def _found_at_end(block: Block, seen: Seen, message: ChatMessage, follows: bool) -> Found:
    """Return what is wrong with a message that arrives, for what it is and what it follows."""
    if not seen.others and not any(each.others for each in block) and _is_plain(message):
        if not seen.turn.calls or not follows:
            return {}
        before = next((each.turn.type for each in reversed(block) if not _is_system(each)), None)
        return dict.fromkeys(_call_behind(before), seen.seq)
    found = []
    for provider in PROVIDERS:
        prior = _turns([block], provider)
        arrival = _placed(seen.sent_to(provider), len(prior), seen.seq, message)
        alone = findings(Sent([*prior, arrival], provider), _ARRIVING)
        # An empty answer is told at once, although Anthropic minds it when another message follows
        followed = [*prior, arrival, Turn(len(prior) + 1, 0, _USER)]
        for each in [*alone, *findings(Sent(followed, provider), _EMPTY)]:
            position = each.positions[0]
            is_first = each.rule == "call_after_model" and not follows
            if not is_first and (position == len(prior) or each.rule == "lone_reasoning"):
                seq = seen.seq if position == len(prior) else block[position].seq
                found.append((each.rule, each.severity, provider, seq))
    return _by_rule(found)


@lru_cache(maxsize=8)
def _call_behind(before: MessageType | None) -> Collection[tuple[str, int, int]]:
    """Return what is wrong with a tool call that follows another message."""
    turns = [Turn(0, 0, before)] if before else []
    turns.append(Turn(len(turns), 1, _AI, ("call",)))
    found = [
        (each.rule, each.severity, provider, 0)
        for provider in PROVIDERS
        for each in findings(Sent(turns, provider), _NEIGHBOURS)
        if each.positions == (len(turns) - 1,)
    ]
    return _by_rule(found).keys()


def _is_plain(message: ChatMessage) -> bool:
    """Whether no rule about one message has anything to say of it: it has a text, or calls with
    their own ids and objects as arguments, and nothing beside that.
    """
    if getattr(message, "attributes", None):
        return False
    if isinstance(message, AiMessage):
        calls = message.tool_execution_requests
        ids = [call.id if call else None for call in calls]
        are_told = all(ids) and len(set(ids)) == len(ids)
        said = (message.text or "").strip() or calls
        return bool(said) and are_told and all(map(_has_object, calls))
    if isinstance(message, ToolExecutionResultMessage) and not message.id:
        return False
    contents = getattr(message, "contents", None)
    if contents is None:
        return message.type is _SYSTEM
    text = getattr(contents[0], "text", None) if len(contents) == 1 else None
    return text is not None and bool(text.strip())


def _is_text(message: ChatMessage) -> bool:
    """Whether a message of the user or the assistant is a text and nothing else."""
    is_turn = message.type is _USER or message.type is _AI
    return is_turn and not message.has_tool_execution_requests and _is_plain(message)


def _has_object(call: ToolExecutionRequest | None) -> bool:
    try:
        return call is not None and isinstance(load_json(call.arguments or "{}"), dict)
    except InvalidMessage:
        return False


def _found_in_sketch(blocks: Sequence[Block]) -> _Paired:
    """Return what is wrong between calls and results."""
    if not any(_is_paired(each) for block in blocks for each in block):
        return NOTHING_PAIRED
    if any(each.others for block in blocks for each in block):
        return _paired(blocks)
    numbers: dict[str | None, str] = {}
    alike: list[tuple[MessageType, Any, Any] | None] = []
    for block in blocks:
        for _, turn, _ in block:
            calls = tuple([id and numbers.setdefault(id, str(len(numbers))) for id in turn.calls])
            answers = turn.answers and numbers.setdefault(turn.answers, str(len(numbers)))
            alike.append((turn.type, calls, answers))
        alike.append(None)
    return _paired_alike(tuple(alike))


@lru_cache(maxsize=4096)
def _paired_alike(alike: Sequence[tuple[MessageType, Any, Any] | None]) -> _Paired:
    """Return the same for all sketches that differ in numbers and ids only."""
    blocks: list[Block] = []
    block: Block = ()
    for place, each in enumerate(alike):
        if each is None:
            blocks.append(block)
            block = ()
        else:
            block = (*block, Seen(place, Turn(0, place, *each), {}))
    return _paired(blocks)


def _paired(blocks: Sequence[Block]) -> _Paired:
    places = {seen.seq: n for n, seen in enumerate(seen for block in blocks for seen in block)}
    numbers = {seen.seq: n for n, block in enumerate(blocks) for seen in block}
    faulty: set[int] = set()
    found, waiting = [], None
    for provider in PROVIDERS:
        pairing = Sent(_turns(blocks, provider), provider).pairing
        pairs = {"results_apart": pairing.apart, "duplicate_result": pairing.repeated}
        at_fault: list[tuple[str, Turn]] = [("orphan_result", each) for each in pairing.orphans]
        at_fault += [("dangling_call", each.call) for each in pairing.dangling if each.before]
        at_fault += [(rule, result) for rule, each in pairs.items() for result, _ in each]
        faulty |= {numbers[other.number] for each in pairs.values() for _, other in each}
        faulty |= {numbers[turn.number] for _, turn in at_fault}
        for rule, turn in at_fault:
            if law := RULES[rule].laws.get(provider):
                found.append((rule, law.severity, provider, places[turn.number]))
        if provider == OPENAI:
            open = (each.call.number for each in pairing.dangling if not each.before)
            waiting = next((places[number] for number in open), None)
    return _Paired(_by_rule(found), frozenset(faulty), waiting)


def _is_system(seen: Seen) -> bool:
    return seen.turn.type is _SYSTEM


def _is_paired(seen: Seen) -> bool:
    return bool(seen.turn.calls or seen.others) or seen.turn.type is _RESULT


def _of_beginning(beginning: Beginning, systems: int) -> Mapping[tuple[str, int, int], int]:
    leading, first, _ = beginning
    return _beginning(min(leading, 2), first, min(systems - leading, 2))


@lru_cache(maxsize=128)
def _beginning(leading: int, first: str, behind: int) -> Mapping[tuple[str, int, int], int]:
    """Return what is wrong with a window that begins so, asked of turns that stand for it."""
    types = [_SYSTEM] * leading
    if first:
        types.append(_AI if first == _CALL else TYPES[first])
    types += [_SYSTEM] * behind
    turns = [Turn(n, n, type) for n, type in enumerate(types)]
    if first == _CALL:
        turns[leading] = turns[leading]._replace(calls=("call",))
    found = [
        (each.rule, each.severity, provider, 0)
        for provider in PROVIDERS
        for each in findings(Sent(turns, provider), _BEGINNING)
    ]
    return _by_rule(found)


# The sketch


def _begins_block(block: Block, seen: Seen) -> bool:
    """Whether a message begins a block: one of the user does, and one of the assistant that is not
    of the same turn as the one before it, for any provider.
    """
    if seen.turn.type is not _AI:
        return seen.turn.type is _USER
    before = next((each for each in reversed(block) if not _is_system(each)), None)
    return before is None or not any(
        seen.sent_to(name).joins or before.sent_to(name).type is _AI for name in PROVIDERS
    )


def _shortened(block: Block, seen: Seen) -> Block:
    """Return a block without its end, if that is words of the assistant, who says more."""
    last = block[-1] if block else None
    if last is None or not last.turn.type is seen.turn.type is _AI:
        return block
    has_more = last.turn.calls or last.others or seen.turn.calls or seen.others
    return block if has_more else block[:-1]


def _without_repeated_words(block: Block) -> Block:
    """Return a block in which words of the assistant may follow one another now."""
    found: Block = ()
    for seen in block:
        found = (*_shortened(found, seen), seen)
    return found


def _turns(blocks: Iterable[Block], provider: str) -> list[Turn]:
    """Return the turns of blocks, with one of the user between two that are not adjacent."""
    turns: list[Turn] = []
    for block in blocks:
        if turns and block[0].turn.type is _AI:
            turns.append(Turn(len(turns), 0, _USER))
        for each in block:
            turns.append(_placed(each.sent_to(provider), len(turns), each.seq))
    return turns


def _placed(turn: Turn, position: int, seq: int, message: ChatMessage | None = None) -> Turn:
    return turn._replace(position=position, number=seq, message=message)


def _seen_in(seq: int, message: ChatMessage) -> Seen:
    """Return a message as providers get it; with attributes, some may get it otherwise."""
    turn = Turn.of(0, seq, message)
    if not getattr(message, "attributes", None):
        return Seen(seq, turn, {})
    others = {}
    for provider in PROVIDERS:
        (sent,) = turns_of([message], provider, [seq])
        if sent._replace(message=None) != turn:
            others[provider] = sent._replace(message=None)
    return Seen(seq, turn, others)


def _written(seen: Seen) -> list[Any]:
    found = [seen.seq, *_columns(seen.turn)]
    if seen.others:
        found.append(
            {
                name: [
                    *_columns(turn),
                    sorted(turn.optional, key=str),
                    turn.joins,
                    _pending(turn),
                ]
                for name, turn in seen.others.items()
            }
        )
    return found


def _columns(turn: Turn) -> list[Any]:
    return [turn.type.value, list(turn.calls), turn.answers]


def _pending(turn: Turn) -> str | None:
    """Return the id of reasoning at the end of a message, whose item is not in it."""
    items = [*turn.own]
    last = items[-1] if items else {}
    return last.get("id") if last.get("type") == _REASONING else None


def _seen(stored: Sequence[Any]) -> Seen:
    seq, type, calls, answers, *others = stored
    return Seen(
        seq,
        Turn(0, seq, TYPES[type], tuple(calls), answers),
        {name: _other(seq, *each) for name, each in (others[0] if others else {}).items()},
    )


def _other(
    seq: int,
    type: str,
    calls: Sequence[str | None],
    answers: str | None,
    optional: Sequence[str | None],
    joins: bool,
    pending: str | None,
) -> Turn:
    own = ({"type": _REASONING, "id": pending},) if pending else ()
    turn = Turn(0, seq, TYPES[type], tuple(calls), answers)
    return turn._replace(optional=frozenset(optional), joins=joins, own=own)


def providers_of(bits: int) -> Iterator[str]:
    """Yield the providers that are set in a number."""
    return (name for name, bit in BITS.items() if bits & bit)
