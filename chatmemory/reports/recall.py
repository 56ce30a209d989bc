"""The recall report: facts held and cost of each policy, for the conversations of files."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from chatmemory.exceptions import InvalidValue
from chatmemory.known_models import known_model
from chatmemory.printing import Printer, add_json_argument
from chatmemory.recall import RecallSums, histories_for, recall_sums
from chatmemory.recall.advice import Advice, Chooser, Goals
from chatmemory.recall.cost import CacheRules, Prices, providers, rules_of
from chatmemory.recall.facts import NO_WORDS, Words
from chatmemory.recall.frontier import figures_of, tried_of_kind
from chatmemory.recall.history import History
from chatmemory.reports.files import add_file_arguments, transcripts
from chatmemory.reports.recorded import print_recorded
from chatmemory.windows.policies import KINDS, Policy
from chatmemory.windows.written_policies import policies_from_text, policy_from_text, text_of_policy

HELP = (
    "Show the share of the needed facts that each policy would have held, and the cost of its "
    "prompts, for conversations in files, which are not stored, or for stored ones."
)
COLUMNS = (
    *(
        "conversations",
        "recalls",
        "held",
        "nothing_lost",
        "user_repeated",
        "prompt_tokens",
        "calls",
    ),
    *("reusable_tokens", "call_repeated", "read_tokens", "written_tokens"),
)


def add_arguments(parser: ArgumentParser) -> None:
    add_file_arguments(parser, "*")
    parser.add_argument("--label", metavar="NAME[:VALUE]", default="", help="with this label")
    parser.add_argument("--prefix", default="", help="whose id begins with this")
    parser.add_argument(
        "--policies",
        default="token_window:1000,token_window:4000,message_window:20,everything",
        help="such as token_window:3000,low_water=0.6,message_window:20,everything",
    )
    parser.add_argument(
        "--frontier",
        nargs="?",
        const="token_window",
        choices=sorted(KINDS),
        metavar="KIND",
        help="try limits, low waters and beginnings of a kind of policy, by default token_window, "
        "and print those that no other one beats",
    )
    parser.add_argument("--today", default="", metavar="POLICY", help="the policy in force")
    for name, what in (
        ("input", "of input tokens"),
        ("cached", "of those read from the provider's cache"),
        ("write", "of those written to it; by default the input price"),
    ):
        parser.add_argument(f"--{name}", type=_price, help=f"price of a million tokens, {what}")
    parser.add_argument(
        "--provider",
        default="",
        choices=["", *providers()],
        help="whose cache it is: its least length, its steps and its life; default: no bounds",
    )
    parser.add_argument(
        "--share",
        type=float,
        default=Goals.share,
        help="of the facts that a policy must hold to be recommended; default: %(default)s",
    )
    parser.add_argument(
        "--saving",
        type=float,
        default=Goals.saving,
        help="of the cost of everything that it must save; default: %(default)s",
    )
    parser.add_argument(
        "--model",
        default="",
        help="which model gets the prompts: how many tokens it takes, and from which length on its "
        "provider caches, where that is known",
    )
    parser.add_argument(
        "--context", type=int, help="how many tokens the model takes; default: those of --model"
    )
    parser.add_argument(
        "--recorded",
        action="store_true",
        help="print what the cache is predicted to save beside the usage that files recorded",
    )
    add_json_argument(parser, "policy")


def _price(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(text) from None


def _context_of(options: Mapping[str, Any]) -> int | None:
    context: int | None = options["context"]
    known = known_model(options["model"])
    return known.prompt if context is None and known else context


@dataclass(frozen=True)
class RecallOptions:
    """The options of the command, read."""

    policies: Sequence[Policy | None]
    frontier: Policy | None
    today: Policy | None
    prices: Prices
    rules: CacheRules
    goals: Goals

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> RecallOptions:
        """Read the options. Raises InvalidValue, UnknownEstimator."""
        kind, today = options["frontier"], options["today"]
        for name in ("share", "saving"):
            if not 0 <= options[name] <= 1:
                raise InvalidValue(f"--{name} is a number from 0 to 1, not {options[name]}")
        return cls(
            policies_from_text(options["policies"]),
            policy_from_text(f"{kind}:1") if kind else None,
            policy_from_text(today) if today else None,
            Prices(options["input"], options["cached"], options["write"]),
            rules_of(options["provider"], options["model"]),
            Goals(options["share"], options["saving"], _context_of(options)),
        )

    def chooser(self, histories: Iterable[tuple[History, Policy | None]]) -> Chooser:
        """Return the chooser of the frontier, given histories with their policies in force."""
        assert self.frontier is not None
        also = [self.today.limit] if self.today else []
        tried = tried_of_kind(self.frontier, also, self.rules)
        figures = [
            figures_of(history, tried, self.today or in_force) for history, in_force in histories
        ]
        return Chooser(tried, figures, self.prices, self.goals)


def report(options: Mapping[str, Any], printer: Printer, words: Words = NO_WORDS) -> int:
    if options["recorded"]:
        return print_recorded(options, printer)
    chosen = RecallOptions.of(options)
    if options["label"] or options["prefix"]:
        raise InvalidValue("name files, or stored conversations by --label or --prefix")

    def read(policies: Sequence[Policy | None], by: Printer = printer) -> Iterator[list[History]]:
        paths: list[Path] = options["files"]
        for each in transcripts(paths, options["format"], by):
            yield histories_for(each.messages, policies, words)

    policies, advice = chosen.policies, None
    if chosen.frontier:
        silent = Printer(len, len)  # the second reading prints what is left out
        chooser = chosen.chooser((each[0], None) for each in read([chosen.frontier], silent))
        policies, advice = best_policies(chooser, chosen.today), chooser.advice()
    found = recall_sums(read(policies), policies, chosen.rules, chosen.today)
    print_recalls(found, chosen, printer, advice)
    return 0


def best_policies(chooser: Chooser, today: Policy | None) -> list[Policy | None]:
    """Return the policies that no other one beats, the smallest limit first, and everything."""
    found = chooser.unbeaten()
    policies: list[Policy | None] = [each.policy for each in found]
    return [*([today] if today and today not in policies else []), *policies, None]


def print_recalls(
    found: RecallSums, options: RecallOptions, printer: Printer, advice: Advice | None = None
) -> None:
    """Print a row for each policy, and which of them is recommended."""
    shown = [
        (
            text_of_policy(each.policy),
            [*(f"{n:,}" for n in _numbers(each).values()), _cost(each, options)],
        )
        for each in found.rows
    ]
    rows = [["policy", *COLUMNS, "relative_cost"], *([name, *cells] for name, cells in shown)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    heading, *lines = (_aligned(row, widths) for row in rows)
    if not printer.as_json:
        printer.line(heading)
    for each, line in zip(found.rows, lines, strict=True):
        cost = each.relative_cost(options.prices)
        values = {"relative_cost": cost and round(cost, 4), "priced": options.prices.priced}
        printer.row({"policy": text_of_policy(each.policy), **_numbers(each), **values}, line)
    conversations = found.rows[0].conversations if found.rows else 0
    pick, why = found.recommended(options.prices, options.goals, advice)
    sentence = f"recommended: {pick or 'nothing'}: {why}."
    values = {"conversations": conversations, "recommended": pick, "why": why}
    printer.total(values, sentence)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = row
    cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
    return "  ".join([first.ljust(widths[0]), *cells])


def _numbers(found: Any) -> dict[str, int]:
    return {name: getattr(found, name) for name in COLUMNS}


def _cost(found: Any, options: RecallOptions) -> str:
    cost = found.relative_cost(options.prices)
    return "" if cost is None else f"{cost:.2f}"
