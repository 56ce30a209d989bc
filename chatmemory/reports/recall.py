"""Reports on conversations in files: how many needed facts each policy holds, and what its prompts
cost.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass

from chatmemory.advice import Advice, Goals, answer_of
from chatmemory.advice.choosing import NEARLY
from chatmemory.advice.recalls import Recalls, kind_to_try, tried_for
from chatmemory.advice.words import sentence
from chatmemory.exceptions import InvalidValue
from chatmemory.known_models import known_model
from chatmemory.messages.json_values import JsonValue
from chatmemory.printing import Options, Printer, add_json_argument
from chatmemory.recall.cost import CacheRules, Prices
from chatmemory.recall.facts import NO_WORDS, Words
from chatmemory.recall.frontier import TriedPolicies
from chatmemory.recall.sessions import said_messages
from chatmemory.reports.files import add_file_arguments, named_transcripts
from chatmemory.reports.prices import add_price_arguments, prices_and_rules
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
    "by_index",
)


def add_arguments(parser: ArgumentParser) -> None:
    add_file_arguments(parser, "*")
    parser.add_argument(
        "--label", metavar="NAME[:VALUE]", default="", help="only conversations with this label"
    )
    parser.add_argument(
        "--prefix", default="", help="only conversations whose id begins with this text"
    )
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
        help="try limits and trim settings of a kind of policy, by default "
        "token_window; leave out those that hold no more facts than a cheaper one",
    )
    parser.add_argument("--today", default="", metavar="POLICY", help="the policy in force")
    add_price_arguments(parser)
    parser.add_argument(
        "--share",
        type=float,
        default=Goals.share,
        help="a recommended policy holds this share of the needed facts; default: %(default)s",
    )
    parser.add_argument(
        "--saving",
        type=float,
        default=Goals.saving,
        help="a recommended policy saves this share of the cost of sending everything; "
        "default: %(default)s",
    )
    parser.add_argument(
        "--model",
        default="",
        help="the model that gets the prompts; if known, its context window and the "
        "shortest prompt that its provider caches are used",
    )
    parser.add_argument(
        "--context",
        type=int,
        help="the context window of the model in tokens; default: that of --model",
    )
    parser.add_argument(
        "--recorded",
        action="store_true",
        help="print the predicted use of the prompt cache beside the use that the files recorded",
    )
    add_json_argument(parser, "policy")


def _context_of(options: Options) -> int | None:
    context: int | None = options["context"]
    known = known_model(options["model"])
    return known.prompt if context is None and known else context


@dataclass(frozen=True)
class RecallOptions:
    """The parsed options of the command `recall`.

    - `policies`: the policies to report. None stands for sending everything.
    - `today`: the policy in force, or None if it is not given.
    - `frontier`: a policy of the kind in the option `--frontier`, to try with many limits. None
      without this option.
    - `prices`, `rules`: the prices, and the rules of the provider's prompt cache.
    - `goals`: what an advised policy must reach.
    """

    policies: Sequence[Policy | None]
    frontier: Policy | None
    today: Policy | None
    prices: Prices
    rules: CacheRules
    goals: Goals

    @property
    def asked(self) -> tuple[Prices, Goals]:
        return self.prices, self.goals

    @classmethod
    def of(cls, options: Options) -> RecallOptions:
        """Return the parsed options. Raises InvalidValue, UnknownEstimator."""
        kind, today = options["frontier"], options["today"]
        for name in ("share", "saving"):
            if not 0 <= options[name] <= 1:
                raise InvalidValue(f"--{name} is a number from 0 to 1, not {options[name]}")
        return cls(
            policies_from_text(options["policies"]),
            policy_from_text(f"{kind}:1") if kind else None,
            policy_from_text(today) if today else None,
            *prices_and_rules(options),
            Goals(options["share"], options["saving"], _context_of(options)),
        )

    def kind(self) -> Policy:
        """Return the policy that is tried with many limits for the advice: `frontier`, or else
        `today`. If neither is given, return the first of `policies` that is not None, or else a
        token window.
        """
        return self.frontier or kind_to_try(self.policies, self.today)

    def tried(self, policies: Sequence[Policy | None]) -> TriedPolicies:
        return tried_for(self.kind(), policies, self.rules, self.today)


def report(options: Options, printer: Printer, words: Words = NO_WORDS) -> int:
    if options["recorded"]:
        return print_recorded(options, printer)
    chosen = RecallOptions.of(options)
    if options["label"] or options["prefix"]:
        raise InvalidValue("name files, or stored conversations by --label or --prefix")

    def read(policies: Sequence[Policy | None], by: Printer = printer) -> Recalls:
        found = Recalls(policies, chosen.rules)
        tried = chosen.tried(policies)
        for name, each in named_transcripts(options["files"], options["format"], by):
            said = said_messages(each.messages, each.session)
            found.add_said(name, said, tried, words, chosen.today)
        return found

    if not chosen.frontier:
        found = read(chosen.policies)
        print_recalls(found, chosen, found.advice(*chosen.asked), printer)
        return 0
    silent = Printer(len, len)  # the second reading prints what is left out
    advice = read([], silent).advice(*chosen.asked)
    print_recalls(read(best_policies(advice)), chosen, advice, printer)
    return 0


def best_policies(advice: Advice) -> list[Policy | None]:
    """Return the policies to print: the best windows, cheapest first, and then None, which sends
    everything. If the policy in force is not among the best windows, it comes first.

    A best window meets three conditions:

    - Its prompts fit the model's context window.
    - The share of needed facts that it holds reaches at least 75 % of the goal.
    - No cheaper policy is at least as good (see `Option.dominates`).
    """
    least = NEARLY * advice.goals.share
    found = [
        each.policy
        for each in advice.options
        if each.share >= least and each.fits and not advice.is_dominated(each)
    ]
    today = advice.today.policy if advice.today else None
    return [*([today] if today and today not in found else []), *found, None]


def print_recalls(found: Recalls, options: RecallOptions, advice: Advice, printer: Printer) -> None:
    """Print a row for each policy, then the advice."""
    costs = found.relative_costs(advice)
    shown = [
        (
            text_of_policy(each.policy),
            [*(f"{n:,}" for n in _numbers(each).values()), "" if cost is None else f"{cost:.2f}"],
        )
        for each, cost in zip(found.rows, costs, strict=True)
    ]
    rows = [["policy", *COLUMNS, "relative_cost"], *([name, *cells] for name, cells in shown)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    heading, *lines = (_aligned(row, widths) for row in rows)
    if not printer.as_json:
        printer.line(heading)
    for each, cost, line in zip(found.rows, costs, lines, strict=True):
        values = {"relative_cost": cost and round(cost, 4), "priced": options.prices.priced}
        printer.row({"policy": text_of_policy(each.policy), **_numbers(each), **values}, line)
    conversations = found.rows[0].conversations if found.rows else 0
    values = {"conversations": conversations, **answer_of(advice)}
    printer.total(values, f"recommended: {advice.recommended or 'nothing'}: {sentence(advice)}.")


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = row
    cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
    return "  ".join([first.ljust(widths[0]), *cells])


def _numbers(found: JsonValue) -> dict[str, int]:
    return {name: getattr(found, name) for name in COLUMNS}
