"""Reads the contents of an evidence file: the messages and the steps of a conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from django.db.models import Q

from chatmemory import InvalidValue
from chatmemory.database import in_list
from chatmemory.explain import captions, receipts
from chatmemory.explain.interruptions import state_of, why_unseen
from chatmemory.explain.reasons import why_left
from chatmemory.explain.wording import load_words, policy_words, window_size_words
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.overrides import is_of_stub, text_of_stub
from chatmemory.messages.json_values import JsonDict
from chatmemory.models import Message, Stay, Step
from chatmemory.reading import conversations, windows
from chatmemory.reading.rows import MessageDetail, StepDetail, with_stays
from chatmemory.reading.steps import step_detail
from chatmemory.reading.windows import WindowView
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.window import Totals
from inspector.conversation.history import without_escapes
from inspector.conversation.looks import STYLES
from inspector.conversation.measures import Measure
from inspector.rooms.evidence_file.incidents import WHOLE, Shown, advice_in, incident_cards
from inspector.rooms.evidence_file.masking import Masker

STEPS_MAX = 600  # steps of a file, around the requested one
MESSAGES_MAX = 1_500
TEXT_MAX = 20_000  # characters of a message
# The parts of the bar: names, CSS classes, and glyphs of the messages that they sum up
KINDS = [
    ["System", "b-system", ["system"]],
    ["Results", "b-result", ["result"]],
    ["Talk", "b-talk", ["user", "ai", "call"]],
]
# The CSS classes of the lines of a sum
LINES = {"over": "k-over", "minus": "k-minus", "fits": "k-fits", "sub": "is-sub"}


@dataclass(frozen=True)
class Evidence:
    """The contents of an evidence file. `data` is written to the file as JSON. `last_step` is the
    last step of the conversation. The file can end before this step.
    """

    data: JsonDict
    last_step: int

    @property
    def is_part(self) -> bool:
        """Whether the file lacks some steps of the conversation."""
        first, last = self.data["steps"][0]["n"], self.data["steps"][-1]["n"]
        return bool((first, last) != (1, self.last_step))

    @property
    def incident(self) -> JsonDict | None:
        """The newest incident in `data` whose fact had left memory by the step `data["at"]`. None
        if there is no such incident.
        """
        at = self.data["at"]
        found = [each for each in self.data["incidents"] if each["left"] <= at]
        return found[-1] if found else None

    @property
    def digest(self) -> str:
        """The SHA-256 of the JSON data in the file, in hexadecimal."""
        return sha256(as_json(self.data).encode()).hexdigest()


def as_json(data: object) -> str:
    """Return JSON that is safe inside an HTML script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def evidence(memory_id: str, at: int | None, masker: Masker) -> Evidence:
    """Return the contents of an evidence file about a conversation at the step `at`, with masked
    texts. With `at=None`, the step is the last step of the conversation.

    Raises MemoryNotFound, StepNotFound, and InvalidValue for a conversation without steps.
    """
    with one_snapshot():
        memory = conversations.memory(memory_id)
        state = windows.window(memory_id, at)
        if not memory.last_step:
            raise InvalidValue(
                f"the conversation {memory_id!r} has no steps yet: add a message first"
            )
        first, last = _range(state.step, memory.last_step)
        details = list(_details(memory_id, first, last))
        messages = _messages(memory_id, first, last)
        stubs = _stubs(memory_id, [row.seq for row in messages])
        has_calls = any(row.has_calls for row in messages)
        windows_of = _windows(memory_id, details) if has_calls else {}
    policy = memory.policy
    data = {
        "id": memory.id,
        "unit": Measure.of(policy).unit,
        "at": state.step,
        "last_step": memory.last_step,
        "kinds": KINDS,
        "lines": LINES,
        "steps": [_step(each, windows_of.get(each.row.n)) for each in details],
    }
    whole = frozenset(row.seq for row in messages if _is_whole(row, masker))
    rows, steps = {row.seq: row for row in messages}, {each.row.n: each for each in details}
    card, advice = advice_in(memory.id, masker)
    masked = {
        **masker.data(data),
        "policy": masker.without_words(policy_words(policy)),
        "estimator": masker.without_words(policy.estimator if policy else ""),
        "messages": [_message(each, stubs.get(each.seq, ()), masker) for each in messages],
        "incidents": incident_cards(Shown(memory.id, rows, steps, whole, masker), card),
        "advice": advice,
        "head": memory.head,
        "left_out": sorted(whole),
    }
    return Evidence(masked, memory.last_step)


def _range(at: int, last: int) -> tuple[int, int]:
    """Return the first and the last step of a file."""
    first = max(1, min(at - STEPS_MAX // 2, last - STEPS_MAX + 1))
    return first, min(last, first + STEPS_MAX - 1)


def _details(memory_id: str, first: int, last: int) -> Iterator[StepDetail]:
    """Yield these steps with their changes. Each step is read once."""
    numbers = (max(1, first - 1), last)
    before = None
    for row in Step.objects.filter(memory_id=memory_id, n__range=numbers).order_by("n"):
        if row.n >= first:
            yield step_detail(row, before)
        before = row


def _windows(memory_id: str, details: Iterable[StepDetail]) -> dict[int, WindowView]:
    """Return windows by step, but only those with an interrupted tool call that the model does not
    see.
    """
    recovering = (
        each.row.n for each in details if can_decide(each.row.policy) and each.row.policy.recovers
    )
    found = {n: windows.outline(memory_id, n) for n in recovering}
    return {n: window for n, window in found.items() if window.interrupted}


def _messages(memory_id: str, first: int, last: int) -> tuple[MessageDetail, ...]:
    """Return the messages that were in memory at any of the steps `first` to `last`. Of too many
    messages, return the newest.
    """
    stays = Stay.objects.filter(
        Q(left_step=None) | Q(left_step__gte=first), memory_id=memory_id, entered_step__lte=last
    )
    seqs = stays.order_by("-seq").values_list("seq", flat=True).distinct()[:MESSAGES_MAX]
    rows = Message.objects.filter(in_list("seq", list(seqs)), memory_id=memory_id).order_by("seq")
    return with_stays(memory_id, list(rows))


def _stubs(memory_id: str, seqs: Sequence[int]) -> Mapping[int, Sequence[Stay]]:
    """Return by seq the stays in which a stub replaced the text of a tool result."""
    stays = Stay.objects.filter(in_list("seq", seqs), memory_id=memory_id, overrides__isnull=False)
    found: dict[int, list[Stay]] = {}
    for stay in stays.order_by("n"):
        if is_of_stub(stay.overrides):
            found.setdefault(stay.seq, []).append(stay)
    return found


def _is_whole(row: MessageDetail, masker: Masker) -> bool:
    return masker.is_whole(row.seq, STYLES[row.type, row.has_calls].glyph)


def _message(row: MessageDetail, stubs: Sequence[Stay], masker: Masker) -> JsonDict:
    look = STYLES[row.type, row.has_calls]
    is_whole = _is_whole(row, masker)
    said = without_escapes(row.readable)
    text = WHOLE if is_whole else masker.text(said, TEXT_MAX)
    stub_texts = [
        WHOLE if is_whole else masker.text(_stub_text(each, row), TEXT_MAX) for each in stubs
    ]
    return {
        "seq": row.seq,
        "role": "Summary" if row.is_summary else look.role,
        "glyph": look.glyph,
        "code": look.is_code,
        "text": text,
        "cut": 0 if is_whole else max(0, len(said) - TEXT_MAX),
        "tokens": row.tokens,
        "said": row.origin == "SAID",
        "times": [[entered, left] for entered, left, _ in row.visits],
        "stubs": [
            [stay.entered_step, stay.left_step, stay.tokens, words]
            for stay, words in zip(stubs, stub_texts, strict=True)
        ],
    }


def _stub_text(stay: Stay, row: MessageDetail) -> str:
    """Return the text of a stub. If a redaction erased the stub, return the text of its message."""
    return without_escapes(text_of_stub(stay.overrides, row.text) or row.text)


def _step(detail: StepDetail, window: WindowView | None = None) -> JsonDict:
    """Return a step for the file. `window` is given if the model did not see all messages of the
    window.
    """
    change = detail.change
    after = window.totals if window else change.after
    caption = captions.caption(change, detail.row.note)
    why = [_left(detail, each.seq) for each in change.evicted]
    return {
        "n": change.step,
        "at": detail.row.at.isoformat(timespec="seconds"),
        "words": caption.summary,
        "load": load_words(change.policy, after),
        "held": window_size_words(change.policy, after),
        "unseen": list(_unseen(window)) if window else [],
        "limit": change.policy.limit if change.policy else None,
        "free": _free(change, after),
        "arrived": [each.seq for each in change.arrived],
        # what is cleared stays, as a stub
        "left": [] if change.clears else why,
        "cleared": why if change.clears else [],
        "sums": [
            [line.label, line.amount, line.kind, line.sub]
            for line in receipts.shortened(receipts.receipt(change))
        ],
    }


def _unseen(window: WindowView) -> Iterator[tuple[int, str, str]]:
    """Yield the messages that the model does not see because their tool call is interrupted: seq,
    state, and reason.
    """
    for call in window.interrupted:
        for entry in call.entries:
            yield entry.seq, state_of(call), " ".join(why_unseen(call, entry.seq))


def _free(change: ChangeResult, after: Totals) -> int | None:
    """Return how many more tokens the limit allows; None if the limit does not count tokens."""
    policy = change.policy
    if not can_decide(policy) or policy.unit != "tokens":
        return None
    return max(0, policy.limit - policy.load(after))


def _left(detail: StepDetail, seq: int) -> JsonDict:
    why = why_left(detail.change, seq)
    return {"seq": seq, "why": f"{why.cause} {why.detail}".strip()}
