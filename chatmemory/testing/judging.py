"""Finds faults in recorded conversations, such as incidents, and describes them in sentences.

A function that looks for faults returns a list of sentences, or [] if there are no faults. The
sentences use the same words as the inspector's pages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from chatmemory.advice import advise
from chatmemory.advice.recalls import kind_to_try, measured_of, tried_for
from chatmemory.advice.words import effect, headline
from chatmemory.exceptions import InvalidValue
from chatmemory.lint import PROVIDERS, Finding, Turn, findings_in
from chatmemory.lint.linter import turns_of
from chatmemory.messages.message import MessageType
from chatmemory.messages.phrases import speaker_of
from chatmemory.messages.texts import named, question_in, quoted
from chatmemory.recall.compactions import Level, SessionPath, corpus_evidence
from chatmemory.recall.comparison import follow
from chatmemory.recall.cost import NOTHING_SENT, Bill, CacheRules, Prices, providers, rules_of
from chatmemory.recall.incidents import Forgotten, Incident, forgotten_words, incident_words
from chatmemory.recall.kinds import IncidentKind, kind_named
from chatmemory.reports.compactions import evidence_words
from chatmemory.reports.doctor import NEXT, complaint_words
from chatmemory.reports.incidents import FORCED_NAME
from chatmemory.testing.recorded import Recorded
from chatmemory.windows.written_policies import text_of_policy

LISTED = 10  # the most sentences of one kind


# Memory after a step


def why_not_in_memory(run: Recorded, phrase: str, at: int | None = None) -> list[str]:
    """Return sentences that explain why memory does not hold a phrase after step `at`, by default
    the last step. [] if memory holds the phrase.

    Raises InvalidValue for an empty phrase, and for a step that the replay does not have.
    """
    if not phrase.strip():
        raise InvalidValue("the phrase must not be empty")
    step = run.last_step if at is None else at
    if not 1 <= step <= run.last_step:
        raise InvalidValue(f"at={at}: under {_policy(run)} the steps are 1 to {run.last_step:,}")
    mentions = run.mentions(phrase)
    if run.window(step).intersection(mentions):
        return []
    return ["\n".join(_why_missing(run, phrase, step, mentions))]


def _why_missing(run: Recorded, phrase: str, step: int, mentions: Sequence[int]) -> Iterator[str]:
    does_not = f"memory after step {step:,} does not hold “{phrase}”"
    if not mentions:
        yield f"{does_not}: no message contains these words"
        return
    until = run.arrivals[step - 1].number
    before = [number for number in mentions if number <= until]
    if not before:
        yield f"{does_not}: not said yet; the first message that says it is {named(mentions[0])}"
        return
    lost = _lost(run, phrase, step, before)
    if lost is None:
        yield f"{does_not}: the policy refuses {named(before[-1])}, which says it"
        return
    yield f"{does_not}: {forgotten_words(lost)}"
    yield f"  said: {_quote(run, lost.said, phrase)}"
    yield f"  left: step {lost.left_step:,}, when {_arrived(run, lost.left_step)} arrived"
    if again := next((number for number in mentions if number > until), None):
        yield f"  again: {_quote(run, again, phrase)}"


def _lost(run: Recorded, phrase: str, step: int, before: Sequence[int]) -> Forgotten | None:
    """Return how a phrase left memory: the last eviction up to `step` of a message in `before`.

    `before` are the numbers of the messages that contain the phrase. None if none of them left.
    """
    sayers = set(before)
    left = [
        (each.left, each.number, each.reason)
        for each in run.times
        if each.number in sayers and each.left is not None and each.reason is not None
    ]
    if not left or run.policy is None:
        return None
    left_step, number, reason = max(each for each in left if each[0] <= step)
    until = run.arrivals[step - 1].number
    places = [number - 1 for number in before]
    followed = follow(run.history, run.compared.departures.of_texts, places, run.policy, until)
    origin = max(before, key=lambda number: (-_speaker(run, number), number))
    return Forgotten(phrase, phrase, origin, number, left_step, reason, followed.keeping)


def _speaker(run: Recorded, number: int) -> int:
    """Return the rank of a message's speaker: a user first, then a tool, then all others."""
    type = run.messages[number - 1].type
    return -1 if type is MessageType.USER else speaker_of(type)


def _arrived(run: Recorded, step: int) -> str:
    return named(run.arrivals[step - 1].number)


def _quote(run: Recorded, number: int, phrase: str) -> str:
    return f"{named(number)} “{quoted(run.text(number), phrase)}”"


# Incidents


def kinds_of(names: str | Iterable[str] | None) -> frozenset[str]:
    """Return the kinds of incidents with these names, or all kinds for None.

    Raises InvalidValue for an unknown name.
    """
    if names is None:
        return frozenset(IncidentKind)
    listed = [names] if isinstance(names, str) else names
    return frozenset(name if name == FORCED_NAME else kind_named(name).value for name in listed)


def incidents_in(run: Recorded, kinds: Collection[str]) -> list[str]:
    """Return a text of a few lines for each of the first 10 incidents of these kinds. The text says
    what was forgotten, when it left memory, and which message repeated it.

    If there are more than 10 incidents, a last sentence says how many more.
    """
    found = [each for each in run.incidents if _is_of(each, kinds)]
    shown = run.with_limits(found[:LISTED])
    more = [_more(found, "incident")] if len(found) > LISTED else []
    return ["\n".join(_card(run, each)) for each in shown] + more


def _is_of(incident: Incident, kinds: Collection[str]) -> bool:
    return incident.kind in kinds or (incident.is_forced and FORCED_NAME in kinds)


def _card(run: Recorded, incident: Incident) -> Iterator[str]:
    first = incident.shown
    yield incident_words(incident)
    label = "result" if incident.result else "said"
    yield f"  {label}: {_quote(run, first.said, incident.fact)}"
    yield f"  left: step {first.left_step:,}, when {_arrived(run, first.left_step)} arrived"
    if incident.asked:
        question = question_in(run.text(incident.asked))
        yield f"  asked for: {named(incident.asked)} “{question}”"
    yield f"  {incident.words.repeated}: {_quote(run, incident.again, incident.fact)}"


# Providers


def refused_by(run: Recorded, names: Sequence[str], model: str | None = None) -> list[str]:
    """Return a sentence for each rule by which a provider would reject prompts of a conversation.
    There are at most 10 such sentences. If more rules are broken, a last sentence says how many
    more.

    The prompts are the windows just before each answer, and the window at the end. Raises
    InvalidValue for an unknown provider.
    """
    if not names:
        raise InvalidValue(f"name a provider: {', '.join(PROVIDERS)}")
    lines = [each for name in names for each in _refused(run, name, model)]
    return lines[:LISTED] + ([_more(lines, "finding")] if len(lines) > LISTED else [])


def _refused(run: Recorded, provider: str, model: str | None) -> list[str]:
    turns = turns_of(run.messages, provider)
    first: dict[str, str] = {}  # the first finding of each rule, in words
    places: dict[str, list[int]] = {}  # the answers whose prompts break each rule
    for number, window in prompts(run):
        for found in _refusals([turns[each - 1] for each in window], provider, model):
            is_next = found.is_pending or found.rule in NEXT
            if is_next and number > len(run.messages):
                continue
            words = complaint_words(provider, found.severity, found.message, found.rule)
            first.setdefault(found.rule, words)
            if number not in (numbers := places.setdefault(found.rule, [])):
                numbers.append(number)
    return [f"{_place(run, places[rule])}: {words}" for rule, words in first.items()]


def _place(run: Recorded, numbers: Sequence[int]) -> str:
    is_end = numbers[0] > len(run.messages)
    first = "window at the end" if is_end else f"prompt of {named(numbers[0])}"
    more = len(numbers) - 1
    return first if not more else f"{first}, and {more:,} more"


def prompts(run: Recorded) -> Iterator[tuple[int, list[int]]]:
    """Yield each prompt as a pair: the number of the answer to the prompt, and the numbers of the
    messages in the prompt.

    The last pair is the window at the end, as the prompt of an answer still to come.
    """
    arriving = {each.number: each.step for each in run.arrivals}
    step = 0
    for number, message in enumerate(run.messages, 1):
        if message.type is MessageType.AI and (window := _in_order(run, step)):
            yield number, window
        step = arriving.get(number, step)
    if window := _in_order(run, step):
        yield len(run.messages) + 1, window


def _in_order(run: Recorded, step: int) -> list[int]:
    """Return the numbers of the messages in memory after a step, in the order of the window."""
    window = sorted(run.window(step))
    if run.policy is None or not run.policy.always_keep_system_message_first:
        return window
    return sorted(window, key=lambda n: run.messages[n - 1].type is not MessageType.SYSTEM)


def _refusals(window: Sequence[Turn], provider: str, model: str | None) -> Iterator[Finding]:
    placed = [turn._replace(position=place) for place, turn in enumerate(window)]
    found = findings_in(placed, provider, model)
    return (each for each in found if each.severity == "refused")


# Costs


@dataclass(frozen=True)
class Costs:
    """The tokens billed for the prompts of several conversations (`bill`), and for sending
    everything. `breaks` is the number of prompts that do not begin with the previous prompt.
    """

    bill: Bill
    everything: Bill
    breaks: int

    @classmethod
    def of(cls, runs: Iterable[Recorded], rules: CacheRules) -> Costs:
        bill = everything = NOTHING_SENT
        breaks = 0
        for run in runs:
            bill += run.compared.prompts.bill(rules)
            everything += run.everything.prompts.bill(rules)
            breaks += run.compared.prompts.breaks
        return cls(bill, everything, breaks)


def prices_of(provider: str) -> Prices:
    """Return the prices of a provider as multiples of the price of an input token.

    Raises InvalidValue for a provider whose prompt cache is unknown.
    """
    rules_of(provider)
    known = providers()[provider]
    return Prices(Decimal(1), known.cached, known.write)


def cost_failure(
    runs: Sequence[Recorded], at_most: float, provider: str, prices: Prices | None = None
) -> list[str]:
    """Return a sentence if the relative cost of the conversations' prompts is above `at_most`, else
    [].

    `provider` names the prompt cache whose rules are used. If `prices` is None, the provider's
    prices are used. Raises InvalidValue for an unknown provider.
    """
    rules, prices_used = rules_of(provider), prices or prices_of(provider)
    costs = Costs.of(runs, rules)
    relative = prices_used.relative(costs.bill, costs.everything)
    if relative is None or relative <= at_most:
        return []
    cheaper = _cheaper(runs, at_most, rules, prices_used)
    return ["\n".join([_cost_words(costs, relative, at_most), *cheaper])]


def _cost_words(costs: Costs, relative: float, at_most: float) -> str:
    bill, whole = costs.bill, costs.everything
    return (
        f"prompts cost {relative:.2f} times as much as sending everything, but at most "
        f"{at_most:.2f} is allowed: a call has {_per_call(bill):,} tokens, "
        f"{_share(bill.read, bill.tokens)} cached; sending everything has "
        f"{_per_call(whole):,}, {_share(whole.read, whole.tokens)} cached; "
        f"{costs.breaks:,} of {bill.calls:,} prompts do not begin with the previous "
        "prompt"
    )


def _cheaper(
    runs: Sequence[Recorded], at_most: float, rules: CacheRules, prices: Prices
) -> Iterator[str]:
    """Yield a line with the recommended policy, if this policy costs at most the share
    `at_most`.
    """
    kind = kind_to_try(run.policy for run in runs)
    measured = (
        measured_of(run.name, run.history, tried_for(kind, [run.policy], rules), run.policy)
        for run in runs
    )
    advice = advise(measured, prices=prices)
    if advice.is_change and advice.pick and advice.pick.cost <= at_most:
        yield f"  {headline(advice)}: {effect(advice)}"


def _per_call(bill: Bill) -> int:
    return round(bill.tokens / bill.calls) if bill.calls else 0


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "0 %"


# Summaries


def not_in_summaries(runs: Sequence[Recorded], level: str, share: float) -> list[str]:
    """Return a sentence if the summaries of agents' sessions contain less than this share of the
    terms that were needed again, else [].

    Raises InvalidValue for an unknown level, if no compaction is recorded, and if no recorded
    compaction can be measured.
    """
    if level not in [*Level]:
        raise InvalidValue(f"the level {level!r} is none of {', '.join(Level)}")
    sessions = [
        SessionPath(run.root or run.name, run.name, run.session)
        for run in runs
        if run.session and run.session.compactions
    ]
    if not sessions:
        raise InvalidValue(f"{runs[0].name}: no compaction is recorded, so there is no summary")
    words, chosen = runs[0].words, Level(level)
    needed = held = measured = 0
    lines: list[str] = []
    why = ""
    for path, found in corpus_evidence(sessions, words).found:
        if found.why_left_out:
            why = f"{path.name}, compaction {found.number}: {found.why_left_out}"
            continue
        measured += 1
        needed += len(found.needed(chosen))
        held += found.held(chosen)
        lines += evidence_words(path.name, found, chosen) if found.lost(chosen) else ()
    if not measured:
        raise InvalidValue(f"no summary can be measured: {why}")
    if not needed or held >= share * needed:
        return []
    kind = "" if chosen is Level.ALL else f" {chosen}"
    head = (
        f"the summaries hold {held:,} of {needed:,}{kind} exact terms that were "
        f"needed again, which is {100 * held / needed:.0f} %; {100 * share:.0f} % "
        "are required"
    )
    more = [_more(lines, "line")] if len(lines) > LISTED else []
    return ["\n  ".join([head, *lines[:LISTED], *more])]


def _more(found: Sequence[object], noun: str) -> str:
    count = len(found) - LISTED
    return f"and {count:,} more {noun}{'' if count == 1 else 's'}"


def _policy(run: Recorded) -> str:
    return text_of_policy(run.policy)
