"""Services that repair windows, so that a provider accepts them, and services that undo repairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from chatmemory.exceptions import ChatMemoryError, MemoryNotFound, NotRepairable
from chatmemory.ledger.adding import counted_entries
from chatmemory.ledger.changes import ChangeResult
from chatmemory.ledger.lookup import find_memory, find_step
from chatmemory.ledger.recorder import Recorder
from chatmemory.ledger.transaction import planned
from chatmemory.lint import PROVIDERS, Finding
from chatmemory.lint.catalog import RULES
from chatmemory.lint.linter import lint
from chatmemory.lint.linter import repair as repaired
from chatmemory.messages.message import ChatMessage
from chatmemory.messages.texts import named
from chatmemory.models import Step
from chatmemory.snapshots import one_snapshot
from chatmemory.windows.policies import Policy
from chatmemory.windows.stored_policies import can_decide
from chatmemory.windows.transitions import Transition, recovered
from chatmemory.windows.window import Entry
from inspector.rooms.repairs.transitions import before_repair, repair_transition

NOTE = 255


@dataclass(frozen=True)
class RepairPreview:
    """A preview of the repair of a window for a provider.

    - `version`: the version of the conversation.
    - `before`, `after`: the messages of the window, as pairs of number and message. A placeholder
      has None as number.
    - `findings`: the problems of the window now.
    - `left`: the problems that remain after the repair.
    - `done`: the changes of the repair, as sentences. `summary` has them in a few words.
    """

    provider: str
    version: int
    before: Sequence[tuple[int, ChatMessage]]
    after: Sequence[tuple[int | None, ChatMessage]]
    findings: Sequence[Finding]
    done: Sequence[str]
    left: Sequence[Finding]
    summary: str = ""

    @property
    def refused(self) -> Sequence[Finding]:
        """The remaining problems for which the provider would still reject the window. If there are
        any, the window cannot be repaired.
        """
        return [each for each in self.left if each.severity == "refused"]

    @property
    def leaving(self) -> int:
        """The number of messages that the repair removes from memory."""
        return len({seq for seq, _ in self.before} - {seq for seq, _ in self.after})

    @property
    def is_possible(self) -> bool:
        return bool(self.done) and not self.refused


@one_snapshot()
def preview_repair(memory_id: str, provider: str) -> RepairPreview:
    """Return what `repair` would do. Raises MemoryNotFound, and InvalidValue for an unknown
    provider.
    """
    recorder = Recorder(find_memory(memory_id))
    return _planned(recorder, provider)[0]


def repair(
    memory_id: str,
    provider: str,
    *,
    reason: str = "",
    actor: str = "",
    expected_version: int | None = None,
) -> ChangeResult:
    """Repair the window for a provider, as one step. The note of the step has the changes and the
    `reason`.

    Missing tool results are replaced by placeholders, which are not in history. Raises
    MemoryNotFound, InvalidValue and VersionConflict. Raises NotRepairable if nothing has to be
    repaired, or if the provider would still reject the window.
    """

    def change(recorder: Recorder) -> ChangeResult:
        transition, words = _repaired(recorder, provider)
        return recorder.repair(transition, _note(reason, words))

    plan = planned(memory_id, change, actor=actor, expected_version=expected_version)
    return plan.write()


def undo_repair(
    memory_id: str,
    step: int,
    *,
    reason: str = "",
    actor: str = "",
    expected_version: int | None = None,
) -> ChangeResult:
    """Undo the repair that `step` made, by a further step. Removed messages return to their
    positions, and placeholders leave.

    Other messages stay as they are now, even those that arrived after the repair. Raises
    MemoryNotFound, StepNotFound, VersionConflict, and InvalidValue if the step is not a repair.
    Raises NotRepairable if nothing is left to undo, or if the returning messages would exceed the
    limit.
    """
    note = _note(reason, f"Undone: the repair of step {step:,}.")
    plan = planned(
        memory_id,
        lambda recorder: recorder.repair(_undone(recorder, step), note),
        actor=actor,
        expected_version=expected_version,
    )
    return plan.write()


def _undone(recorder: Recorder, step: int) -> Transition:
    """Return the transition that undoes the repair which `step` made."""
    memory = recorder.memory
    repaired_at = find_step(memory, step)
    old = _loaded(recorder)
    new = before_repair(memory, repaired_at, old)
    if [each.seq for each in new] == [each.seq for each in old]:
        raise NotRepairable(
            f"the repair at step {step} cannot be undone: memory no longer has any of its effects"
        )
    _check_room(recorder.policy, old, new)
    return repair_transition(memory, recorder.window, old, new)


def _note(reason: str, words: str) -> str:
    return f"{words} {reason.strip()}".strip()[:NOTE]


def _check_room(policy: Policy | None, old: Sequence[Entry], new: Sequence[Entry]) -> None:
    """Raise NotRepairable if the returning messages would exceed the limit. Otherwise the limit
    would evict other messages for them.
    """
    if not can_decide(policy) or policy.meters_only:
        return
    back, after = set(new) - set(old), policy.total(new)
    if back and policy.is_exceeded_by(after):
        raise NotRepairable(
            f"with the messages that the repair removed, memory would hold {policy.load(after):,} "
            f"{policy.unit}, more than the limit of {policy.limit:,}: raise the limit, or clear "
            "memory"
        )


@dataclass(frozen=True)
class Repairs:
    """The results or previews of repairing several conversations. The keys are conversation IDs.

    - `done`: what each repair changed.
    - `refused`: why a conversation was not repaired.
    - `versions`: the version of each conversation before its repair.
    - `steps`: the step that each repair added; empty for previews.
    - `leaving`: how many messages leave memory, in all conversations together.
    """

    done: dict[str, Sequence[str]]
    refused: dict[str, str]
    versions: dict[str, int]
    steps: dict[str, int]
    leaving: int = 0


def repair_all(
    memory_ids: Iterable[str],
    provider: str,
    *,
    reason: str = "",
    actor: str = "",
    dry_run: bool = False,
    versions: Mapping[str, int] | None = None,
) -> Repairs:
    """Repair conversations, each in its own transaction. With `dry_run`, only preview the repairs.

    `versions` has the expected version of each conversation, by conversation ID. A conversation
    with a different version is not repaired. Without `versions`, the versions are not checked.
    Conversations deleted meanwhile are left out.
    """
    done: dict[str, Sequence[str]] = {}
    refused: dict[str, str] = {}
    found: dict[str, int] = {}
    steps: dict[str, int] = {}
    leaving = 0
    for memory_id in memory_ids:
        with suppress(MemoryNotFound):
            plan = preview_repair(memory_id, provider)
            version = plan.version if versions is None else versions[memory_id]
            if version == plan.version and not plan.is_possible:
                refused[memory_id] = _why_not(plan)
                continue
            try:
                if not dry_run:
                    made = repair(
                        memory_id, provider, reason=reason, actor=actor, expected_version=version
                    )
                    steps[memory_id] = made.step or 0
                done[memory_id], found[memory_id] = plan.done, version
                leaving += plan.leaving
            except MemoryNotFound:
                raise
            except ChatMemoryError as error:
                refused[memory_id] = str(error)
    return Repairs(done, refused, found, steps, leaving)


def newest_repair(memory_id: str) -> int | None:
    """Return the number of the newest step if this step is a repair, else None. Pages offer to undo
    a repair only while it is the newest step.
    """
    memory = find_memory(memory_id)
    newest = Step.objects.filter(memory=memory, n=memory.last_step, kind=Step.Kind.REPAIR)
    return newest.values_list("n", flat=True).first()


def _planned(recorder: Recorder, provider: str) -> tuple[RepairPreview, list[Entry], list[Entry]]:
    """Return the preview of a repair, the entries of the window, and the entries after the
    repair.
    """
    memory, stored = recorder.memory, _loaded(recorder)
    old, _ = recovered(stored, recorder.policy)
    messages, numbers = _messages(old), [each.seq for each in old]
    plan = repaired(messages, provider=provider, numbers=numbers)
    made = [each for each, at in zip(plan.messages, plan.sources, strict=True) if at is None]
    placeholders = iter(counted_entries(memory, made))
    new: list[Entry] = []
    for at in plan.sources:
        # A call and its results are pinned together; a placeholder follows its call.
        new.append(replace(next(placeholders), pinned=new[-1].pinned) if at is None else old[at])
    preview = RepairPreview(
        provider,
        memory.last_step,
        list(zip(numbers, messages, strict=True)),
        [
            (None if at is None else numbers[at], message)
            for message, at in zip(plan.messages, plan.sources, strict=True)
        ],
        lint(messages, provider=provider, numbers=numbers),
        [each.what for each in plan.done],
        plan.left,
        _summary(provider, [(each.repair, numbers[each.position]) for each in plan.done]),
    )
    return preview, stored, _with_interrupted(new, stored, old)


def _with_interrupted(
    new: list[Entry], stored: Iterable[Entry], seen: Iterable[Entry]
) -> list[Entry]:
    """Return the repaired window with the interrupted tool calls that the model does not see. Each
    follows the same message as before.
    """
    shown, kept = {*seen}, {*new}
    behind: dict[Entry | None, list[Entry]] = {}
    last = None
    for entry in stored:
        if entry not in shown:
            behind.setdefault(last, []).append(entry)
        elif entry in kept:
            last = entry
    return [*behind.get(None, ()), *(e for each in new for e in (each, *behind.get(each, ())))]


_WORDS = {
    "add_placeholder": ("placeholder result for {} added", "{} placeholder results added"),
    "drop_result": ("{} removed", "{} orphaned results removed"),
    "drop_duplicate": ("duplicate {} removed", "{} duplicates removed"),
    "move_result": ("{} moved after its tool call", "{} results moved after their tool calls"),
    "system_first": ("{} moved to the beginning", "{} messages moved to the beginning"),
    "begin_with_user": (
        "{} removed before the first user message",
        "{} messages removed before the first user message",
    ),
}


def _summary(provider: str, done: Sequence[tuple[str, int]]) -> str:
    """Return a summary such as `Repaired for OpenAI: placeholder result for #7 added.`"""
    of_kind: dict[str, list[int]] = {}
    for kind, seq in done:
        of_kind.setdefault(kind, []).append(seq)
    phrases = [
        _WORDS[kind][0].format(named(seqs[0]))
        if len(seqs) == 1
        else _WORDS[kind][1].format(f"{len(seqs):,}")
        for kind, seqs in of_kind.items()
    ]
    return f"Repaired for {PROVIDERS[provider]}: {', '.join(phrases)}."


def _repaired(recorder: Recorder, provider: str) -> tuple[Transition, str]:
    """Return the transition to the repaired window, and its summary. Raises NotRepairable."""
    plan, old, new = _planned(recorder, provider)
    if not plan.is_possible:
        raise NotRepairable(_why_not(plan))
    transition = repair_transition(recorder.memory, recorder.window, old, new)
    left = {each.entry for each in transition.evictions}
    remaining = [each for each in transition.arrivals if each not in left]
    entries, _ = recovered(remaining, recorder.policy)
    numbers = [each.seq for each in entries]
    for finding in lint(_messages(entries), provider=provider, numbers=numbers):
        if finding.severity == "refused":
            raise NotRepairable(
                "nothing was repaired, because the provider would still reject the messages: "
                f"{finding.message}"
            )
    return transition, plan.summary


def _loaded(recorder: Recorder) -> list[Entry]:
    return recorder.window.with_messages()


def _messages(entries: Iterable[Entry]) -> list[ChatMessage]:
    return [each.message for each in entries if each.message is not None]


def _why_not(plan: RepairPreview) -> str:
    if plan.refused:
        others = len(plan.refused) - 1
        more = f", and {others:,} more" if others else ""
        first = plan.refused[0]
        prevention = RULES[first.rule].prevention
        instead = f" What would have prevented it: {prevention}" if prevention else ""
        return f"no repair can fix this: {first.message.removesuffix('.')}{more}.{instead}"
    return "memory needs no repair for this provider"
