"""Recorded conversations, and the assertions that a test makes about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from chatmemory.exceptions import ChatMemoryError, InvalidValue
from chatmemory.formats import Transcript
from chatmemory.printing import Printer
from chatmemory.recall.cost import Prices
from chatmemory.recall.facts import NO_WORDS, Words
from chatmemory.recall.sessions import said_messages
from chatmemory.reports.files import TranscriptFile, transcript_files, transcripts_of
from chatmemory.testing import judging
from chatmemory.testing.recorded import Recorded
from chatmemory.windows.policies import Policy
from chatmemory.windows.written_policies import policies_from_text, text_of_policy

PolicyOrText = str | Policy | None


def read_runs(
    paths: Sequence[Path],
    policy: PolicyOrText,
    *,
    format: str = "auto",
    words: Words = NO_WORDS,
    left_out: Callable[[str], object] | None = None,
) -> list[Recorded]:
    """Return the conversations of files and folders, replayed under a policy. The policy None keeps
    everything.

    If a conversation cannot be read, it is left out, and `left_out` is called with the reason.
    Without `left_out`, InvalidValue is raised. Also raises InvalidValue, UnknownEstimator,
    PolicyUnavailable.
    """
    chosen = policy_of(policy)
    printer = Printer(_refuse, left_out or _refuse)
    return [
        Recorded(
            name, said_messages(each.messages, each.session), chosen, each.session, words, root
        )
        for file in transcript_files(paths)
        for name, root, each in _named(file, format, printer, left_out is None)
    ]


def _named(
    file: TranscriptFile, format: str, printer: Printer, is_strict: bool
) -> Iterator[tuple[str, str, Transcript]]:
    """Yield each conversation of a file as (name, root, transcript).

    A conversation without its own name is named after the file. `root` is the name of the session
    from which a branch comes, and "" for a conversation that is no branch.
    """
    root = ""
    try:
        for each in transcripts_of(file.path, format, printer):
            own = each.name if each.name != str(each.number) else None
            name = own or (file.name if each.number == 1 else f"{file.name}-{each.number}")
            root = root if each.is_branch else name
            yield name, root if each.is_branch else "", each
    except ChatMemoryError as error:
        if is_strict:
            raise
        printer.left_out(str(error))


def _refuse(what: str) -> None:
    raise InvalidValue(what.removeprefix("left out "))


def policy_of(policy: PolicyOrText) -> Policy | None:
    """Return the policy that a text names, such as `token_window:4000,low_water=0.5`; None for
    `everything`. Raises InvalidValue if the text does not name exactly one policy.
    """
    if not isinstance(policy, str):
        return policy
    found = policies_from_text(policy)
    if len(found) != 1:
        raise InvalidValue(f"give exactly one policy, but {policy!r} names {len(found)}")
    return found[0]


class Runs(Sequence[Recorded]):
    """Recorded conversations, replayed under one policy.

    An assertion must be true of each conversation. Only costs and summaries are judged for all
    conversations together. A failed assertion raises AssertionError with sentences in the
    inspector's words.
    """

    def __init__(self, what: str, runs: Sequence[Recorded]) -> None:
        self.what, self._runs = what, runs

    def __getitem__(self, place):  # type: ignore[no-untyped-def]  # an index or a slice, as of a list
        return self._runs[place]

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Recorded]:
        return iter(self._runs)

    def assert_holds(self, phrase: str, *, at: int | None = None) -> None:
        """Assert that memory holds a phrase after step `at`, by default after the last step."""
        __tracebackhide__ = True
        self._assert_of_each(lambda run: judging.why_not_in_memory(run, phrase, at))

    def assert_no_incident(self, kind: str | Sequence[str] | None = None) -> None:
        """Assert that no fact or tool call was needed again after it had left memory.

        `kind` names the kinds of incidents that count, such as `user_repeated`. By default all
        kinds count.
        """
        __tracebackhide__ = True
        self._assert_of_each(lambda run: judging.incidents_in(run, judging.kinds_of(kind)))

    def assert_accepted_by(self, *providers: str, model: str | None = None) -> None:
        """Assert that these providers would reject no prompt. Rules that depend on the model are
        only checked if the `model` is named.
        """
        __tracebackhide__ = True
        self._assert_of_each(lambda run: judging.refused_by(run, providers, model))

    def assert_cost(
        self,
        at_most: float,
        *,
        provider: str = "openai",
        input: float | str | None = None,
        cached: float | str | None = None,
        write: float | str | None = None,
    ) -> None:
        """Assert that the relative cost of the prompts is at most `at_most`, such as 0.8. Cached
        input tokens count with their lower price.

        By default the provider's prices are used. `input`, `cached` and `write` are your own prices
        for a million tokens: full input tokens, cached input tokens, and tokens written to the
        prompt cache.
        """
        __tracebackhide__ = True
        given = (None if each is None else Decimal(str(each)) for each in (input, cached, write))
        amounts = tuple(given)
        prices = Prices(*amounts) if any(each is not None for each in amounts) else None
        self._assert(lambda: judging.cost_failure(self._runs, at_most, provider, prices))

    def assert_summary_holds(self, *, level: str = "rare", share: float = 0.75) -> None:
        """Assert that the summaries in agents' sessions contain at least this share of the exact
        terms that were needed again.

        `level` chooses which terms count:
        - `all`: every exact term.
        - `told`: terms that came from a user or a tool, not from the assistant.
        - `rare`: told terms that at most two sessions mention.
        """
        __tracebackhide__ = True
        self._assert(lambda: judging.not_in_summaries(self._runs, level, share))

    def _assert_of_each(self, judge: Callable[[Recorded], list[str]]) -> None:
        __tracebackhide__ = True
        self._assert(lambda: self._of_each(judge))

    def _of_each(self, judge: Callable[[Recorded], list[str]]) -> list[str]:
        found = ((run.name, each) for run in self._runs for each in judge(run))
        return [f"{name}: {each}" if len(self) > 1 else each for name, each in found]

    def _assert(self, judge: Callable[[], list[str]]) -> None:
        __tracebackhide__ = True
        try:
            sentences = judge()
        except ChatMemoryError as error:
            raise InvalidValue(str(error)) from None
        if sentences:
            policy = text_of_policy(self._runs[0].policy)
            raise AssertionError("\n".join([*sentences, f"{self.what}, under {policy}"]))


def runs_of(what: str, runs: Sequence[Recorded], *, name: str | None = None) -> Runs:
    """Return one conversation of a file: the only conversation, or the conversation called `name`.

    `what` names the file in errors. Raises InvalidValue if no conversation, or more than one, fits.
    """
    found = [run for run in runs if name is None or run.name == name]
    if len(found) == 1:
        return Runs(what, found)
    if not found:
        raise InvalidValue(f"{what} has no conversation {name!r}")
    raise InvalidValue(
        f"{what} has {len(found):,} conversations: choose one with name=, such as "
        f"{found[0].name!r}, or read all with transcripts()"
    )
