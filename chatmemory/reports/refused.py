"""Reports, for conversations in files, how many prompts each provider would reject under given
policies.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

from chatmemory.lint import PROVIDERS
from chatmemory.lint.linter import turns_by_provider
from chatmemory.printing import Options, Printer
from chatmemory.recall import histories_for
from chatmemory.recall.facts import NO_WORDS
from chatmemory.recall.history import History
from chatmemory.recall.prompts import Refusals, prompts_of
from chatmemory.reports.files import transcripts
from chatmemory.windows.policies import Policy
from chatmemory.windows.written_policies import policies_from_text, text_of_policy

Sums = Counter[str]  # prompts, refused ones, conversations with one, and last windows refused


def print_refused(options: Options, providers: Sequence[str], printer: Printer) -> int:
    """Print how many prompts would be rejected, for each policy and provider. Returns the exit
    code: 3 if a file or conversation could not be read, else 0.

    A prompt is the window before an AI message. The window at the end of a conversation is counted
    separately.
    """
    policies = policies_from_text(options["policies"])
    models = dict.fromkeys(providers, (options["model"],) if options["model"] else ())
    found: dict[tuple[Policy | None, str], Sums] = {}
    conversations = 0
    for each in transcripts(options["files"], options["format"], printer):
        conversations += 1
        turns = turns_by_provider(each.messages, providers)
        for policy, history in zip(
            policies, histories_for(each.messages, policies, NO_WORDS), strict=True
        ):
            refusals = Refusals(history, turns, models)
            for name, sums in _of(history, policy, refusals, providers).items():
                found.setdefault((policy, name), Counter()).update(sums)
    for (policy, name), sums in found.items():
        values = {each: sums[each] for each in ("prompts", "refused", "conversations", "last")}
        line = (
            f"{text_of_policy(policy)}: {PROVIDERS[name]} would reject "
            f"{sums['refused']:,} of {sums['prompts']:,} prompts, in "
            f"{sums['conversations']:,} conversations, and the last window of "
            f"{sums['last']:,} conversations"
        )
        printer.row({"policy": text_of_policy(policy), "provider": name, **values}, line)
    printer.total({"conversations": conversations}, f"{conversations:,} conversations")
    return printer.code


def _of(
    history: History, policy: Policy | None, refusals: Refusals, providers: Sequence[str]
) -> dict[str, Sums]:
    left = history.loads.departures(policy)
    keeps_first = policy is not None and policy.always_keep_system_message_first
    prompts = prompts_of(history, left, keeps_first, refusals)
    end = OrderedDict.fromkeys(n for n, until in enumerate(left.at) if until >= len(history))
    last = refusals.of(end)
    return {
        name: Counter(
            prompts=prompts.calls,
            refused=(refused := prompts.refused[PROVIDERS[name]]),
            conversations=int(refused > 0),
            last=int(PROVIDERS[name] in last),
        )
        for name in providers
    }
