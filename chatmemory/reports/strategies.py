"""Reports what the memories of other frameworks would have held, and what they would have cost.
Such a memory is called a strategy.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from chatmemory.exceptions import InvalidValue
from chatmemory.messages.estimators import estimator_for
from chatmemory.messages.json_values import JsonDict
from chatmemory.messages.message import ChatMessage
from chatmemory.messages.sessions import Session
from chatmemory.printing import Options, Printer, add_json_argument
from chatmemory.recall.cost import CacheRules, Prices
from chatmemory.recall.facts import NO_WORDS, Words
from chatmemory.recall.history import History, history_of
from chatmemory.recall.sessions import said_messages
from chatmemory.reports.files import add_file_arguments, named_transcripts
from chatmemory.reports.prices import add_price_arguments, prices_and_rules
from chatmemory.strategies import (
    Conversation,
    Measured,
    Settings,
    StandIn,
    Strategy,
    chosen_strategies,
    everything_of,
    measured_by,
)
from chatmemory.windows.policies import DEFAULT_ESTIMATOR

HELP = (
    "Show what the memory of each agent framework would have held of conversations in files, which "
    "are not stored, or of stored ones, and what its prompts would have cost. Each strategy is the "
    "library's own class or function. Summaries are stand-ins: no model is called."
)
COUNTS = ("own", "alike")


def add_arguments(parser: ArgumentParser) -> None:
    add_file_arguments(parser, "*")
    parser.add_argument(
        "--label", metavar="NAME[:VALUE]", default="", help="only conversations with this label"
    )
    parser.add_argument(
        "--prefix", default="", help="only conversations whose id begins with this text"
    )
    parser.add_argument(
        "--strategies", metavar="NAME,NAME", default="", help="only these strategies; default: all"
    )
    parser.add_argument(
        "--tokens",
        type=int,
        default=Settings.tokens,
        help="the limit of strategies that count tokens; default: %(default)s",
    )
    parser.add_argument(
        "--messages",
        type=int,
        default=Settings.messages,
        help="the limit of strategies that count messages or groups; default: %(default)s",
    )
    parser.add_argument(
        "--count",
        default=COUNTS[0],
        choices=COUNTS,
        help="own: each library counts tokens as it does by default; alike: libraries "
        "that accept a counter use the one that counts the costs; default: "
        "%(default)s",
    )
    parser.add_argument(
        "--summaries",
        default=StandIn.NOTHING.value,
        choices=[*map(str, StandIn)],
        help="what stands in for a summary: 500 words without any fact, the first "
        "sentences of the replaced messages, or the summary that the session had "
        "recorded; default: %(default)s",
    )
    add_price_arguments(parser)
    parser.add_argument("--model", default="", help="the model that gets the prompts")
    add_json_argument(parser, "strategy")


@dataclass(frozen=True)
class StrategyOptions:
    """The parsed options of the command `strategies`.

    - `strategies`: the strategies to measure.
    - `settings`: the limits of the strategies, and how they count tokens.
    - `stand_in`: which text replaces a summary in a measured prompt, because no model is called.
    - `prices`, `rules`: the prices, and the rules of the provider's prompt cache.
    """

    strategies: Sequence[Strategy]
    settings: Settings
    stand_in: StandIn
    prices: Prices
    rules: CacheRules

    @classmethod
    def of(cls, options: Options) -> StrategyOptions:
        """Return the parsed options. Raises InvalidValue."""
        for name in ("tokens", "messages"):
            if options[name] < 1:
                raise InvalidValue(f"--{name} must be 1 or more, but is: {options[name]}")
        return cls(
            chosen_strategies(options["strategies"]),
            Settings(
                options["tokens"],
                options["messages"],
                estimator_for(DEFAULT_ESTIMATOR),
                options["count"] == "alike",
            ),
            StandIn(options["summaries"]),
            *prices_and_rules(options),
        )


def report(options: Options, printer: Printer, words: Words = NO_WORDS) -> int:
    chosen = StrategyOptions.of(options)
    if options["label"] or options["prefix"]:
        raise InvalidValue("name files, or stored conversations by --label or --prefix")
    found = named_transcripts(options["files"], options["format"], printer)
    said = (
        conversation_of(said_messages(each.messages, each.session), each.session, words)
        for _, each in found
    )
    print_strategies(sums_of(said, chosen), chosen, printer)
    return printer.code


def conversation_of(
    messages: Iterable[ChatMessage],
    session: Session | None = None,
    words: Words = NO_WORDS,
    history: History | None = None,
) -> Conversation:
    """Return messages as a conversation for measuring strategies. The default estimator counts the
    tokens.

    - `session`: the session of a coding agent from which the messages come, or None.
    - `history`: the same messages as a history for replays. If None, it is made from the messages.
    - `words`: a project's additions to the rules that find facts. Only used if `history` is None.
    """
    listed, estimator = list(messages), estimator_for(DEFAULT_ESTIMATOR)
    known = history or history_of(listed, estimator, words)
    return Conversation(listed, known, estimator, session)


def sums_of(conversations: Iterable[Conversation], chosen: StrategyOptions) -> dict[str, Measured]:
    """Measure the chosen strategies on each conversation. Return a mapping from the name of each
    strategy to its sums over all conversations. Strategies that are not installed are left out.
    """
    installed = [each for each in chosen.strategies if each.is_installed]
    sums = {each.name: Measured() for each in installed}
    for conversation in conversations:
        everything = everything_of(conversation, chosen.rules)
        for each in installed:
            found = measured_by(
                each,
                chosen.settings,
                conversation,
                chosen.stand_in,
                chosen.rules,
                everything,
            )
            sums[each.name] = sums[each.name].plus(found)
    return sums


def values_of(strategy: Strategy, found: Measured, prices: Prices) -> JsonDict:
    """Return the figures of a strategy as a JSON object."""
    costs = found.relative_cost(prices), found.relative_cost_with_summaries(prices)
    cost, with_summaries = (None if each is None else round(each, 4) for each in costs)
    return {
        "strategy": strategy.name,
        "label": strategy.label,
        "package": strategy.package or None,
        "version": strategy.version or None,
        "installed": True,
        "conversations": found.conversations,
        "recalls": found.recalls,
        "held": found.held,
        "calls": found.bill.calls,
        "prompt_tokens": found.bill.tokens,
        "read_tokens": found.bill.read,
        "summaries": found.summaries.calls,
        "summary_tokens": found.summaries.tokens,
        "relative_cost": cost,
        "relative_cost_with_summaries": with_summaries,
        "first_lost": found.first_lost or None,
        "priced": prices.priced,
    }


HEADING = ("strategy", "version", "held", "of", "cost", "with summaries")


def print_strategies(
    sums: Mapping[str, Measured], chosen: StrategyOptions, printer: Printer
) -> None:
    """Print a row for each strategy: how many facts it holds, and its cost. If a strategy is not
    installed, print how to install it.
    """
    known = [each for each in chosen.strategies if each.is_installed]
    rows = [_cells(each, sums[each.name], chosen.prices) for each in known]
    widths = [max(map(len, column)) for column in zip(HEADING, *rows, strict=True)]
    widths[0] = max(widths[0], *(len(each.name) for each in chosen.strategies))
    if not printer.as_json:
        printer.line(_aligned(HEADING, widths))
    lines = iter(rows)
    for each in chosen.strategies:
        if each.is_installed:
            values = values_of(each, sums[each.name], chosen.prices)
            printer.row(values, _aligned(next(lines), widths))
        else:
            missing = {"strategy": each.name, "package": each.package, "installed": False}
            line = f"{each.name.ljust(widths[0])}  {each.how_to_install}"
            printer.row({**missing, "install": each.how_to_install.partition(": ")[2]}, line)
    _print_total(sums, chosen, printer)


def _print_total(sums: Mapping[str, Measured], chosen: StrategyOptions, printer: Printer) -> None:
    conversations = max((each.conversations for each in sums.values()), default=0)
    values = {
        "conversations": conversations,
        "tokens": chosen.settings.tokens,
        "messages": chosen.settings.messages,
        "count": COUNTS[chosen.settings.counts_alike],
        "summaries": chosen.stand_in.value,
        "priced": chosen.prices.priced,
    }
    counted = "the tokenizer of costs" if chosen.settings.counts_alike else "each library's own"
    printer.total(
        values,
        f"{conversations:,} conversations; limits: {chosen.settings.tokens:,} tokens, counted by "
        f"{counted}, and {chosen.settings.messages:,} messages.",
        "Cost 1.00 is sending everything. No model wrote the summaries: "
        f"{_STAND_INS[chosen.stand_in]}.",
    )


_STAND_INS = {
    StandIn.NOTHING: "each is 500 words without any fact",
    StandIn.SENTENCES: "each has the first sentences of what it replaces",
    StandIn.RECORDED: "each is the summary that the session had recorded, or has no fact",
}


def _cells(strategy: Strategy, found: Measured, prices: Prices) -> list[str]:
    costs = found.relative_cost(prices), found.relative_cost_with_summaries(prices)
    shown = ("" if each is None else f"{each:.2f}" for each in costs)
    version = f"{strategy.package} {strategy.version}" if strategy.package else ""
    return [strategy.name, version, f"{found.held:,}", f"{found.recalls:,}", *shown]


def _aligned(row: Iterable[str], widths: Sequence[int]) -> str:
    first, second, *others = row
    cells = [text.rjust(width) for text, width in zip(others, widths[2:], strict=True)]
    return "  ".join([first.ljust(widths[0]), second.ljust(widths[1]), *cells])
