"""The linter: finds why a provider would reject a window, or misunderstand it.

    findings_in(turns, provider)    the faults that the provider would reject or mishandle
    refusals_in(turns, provider)    only the faults that the provider would reject
    verdicts(turns)                 what OpenAI and Anthropic would answer, in a sentence each

Each of the `turns` is one message in the linter's form (see `Turn`). To check or repair a list of
messages, use `lint` and `repair` of `chatmemory.lint.linter`. `chatmemory.lint.catalog` has the
rules by id, each with its source and two examples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chatmemory.lint.rules import Finding, Rule, findings, refusing
from chatmemory.lint.turns import (
    ANTHROPIC,
    COMBINING,
    OPENAI,
    PROVIDERS,
    ProviderWindow,
    Turn,
    Waiting,
)

__all__ = [
    "COMBINING",
    "LESSON_PROVIDERS",
    "PROVIDERS",
    "Finding",
    "ProviderWindow",
    "Rule",
    "Turn",
    "Verdict",
    "Waiting",
    "findings_in",
    "refusals_in",
    "verdicts",
]

LESSON_PROVIDERS = (OPENAI, ANTHROPIC)  # the providers that lessons name


def findings_in(turns: Iterable[Turn], provider: str, model: str | None = None) -> list[Finding]:
    """Return the reasons why a provider would reject or mishandle a window, ordered by message.

    `turns` are the messages of the window in the linter's form (see `Turn`).
    """
    from chatmemory.lint.catalog import RULES  # many programs examine no window

    return findings(ProviderWindow(turns, provider, model=model), RULES.values())


def refusals_in(turns: Iterable[Turn], provider: str, models: Sequence[str] = ()) -> list[Finding]:
    """Return the faults for which a provider would reject a window. `turns` are the messages of the
    window in the linter's form.

    With `models`, the window is checked for each of these models. A fault is returned once for each
    model that rejects the window because of this fault.
    """
    from chatmemory.lint.catalog import RULES  # many programs examine no window

    window = list(turns)
    windows = (ProviderWindow(window, provider, model=model) for model in models or (None,))
    return [each for sent in windows for each in findings(sent, refusing(RULES.values(), sent))]


@dataclass(frozen=True)
class Verdict:
    """The answer of a provider to a window, as the rules predict it.

    - `provider`: the provider's name for people, such as "OpenAI".
    - `findings`: the faults of the window. Empty if there are none.
    """

    provider: str
    findings: Sequence[Finding] = ()

    @property
    def _refusal(self) -> Finding | None:
        return next((each for each in self.findings if each.severity == "refused"), None)

    @property
    def accepts(self) -> bool:
        return self._refusal is None

    @property
    def answer(self) -> str:
        """The answer in words.

        - "Yes." if the window is accepted. Faults that only some models reject do not count.
        - "No." and a sentence about the first fault that the provider rejects.
        - "Not yet." instead of "No.", if the next messages end this fault. An example is a tool
          call whose results have not come yet.
        - "Accepted, but mishandled: …" if the window is misunderstood.
        """
        if refusal := self._refusal:
            return f"{'Not yet' if refusal.is_pending else 'No'}. {refusal.message}"
        minded = [each for each in self.findings if each.severity != "conditional"]
        if not minded:
            return "Yes."
        what = minded[0].message
        return (
            "Accepted, but mishandled: "
            f"{what if what.startswith('AI') else what[0].lower() + what[1:]}"
        )


def verdicts(turns: Sequence[Turn]) -> tuple[Verdict, ...]:
    """Return two verdicts about a window: what OpenAI would answer, and what Anthropic would
    answer. `LESSON_PROVIDERS` names these two providers.
    """
    return tuple(Verdict(PROVIDERS[name], findings_in(turns, name)) for name in LESSON_PROVIDERS)
