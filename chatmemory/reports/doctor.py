"""Reports, for conversations in files, which windows a provider would reject."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from chatmemory.exceptions import InvalidValue
from chatmemory.lint import PROVIDERS
from chatmemory.lint.answers import place_in, rate_limited, too_long
from chatmemory.lint.linter import lint
from chatmemory.lint.recognition import recognized
from chatmemory.printing import Options, Printer, add_json_argument
from chatmemory.recall.facts import NO_WORDS, Words
from chatmemory.reports.files import add_file_arguments, transcripts
from chatmemory.reports.laws import print_laws
from chatmemory.reports.refused import print_refused

HELP = (
    "Tell which windows providers would reject, and why. Without FILE: the windows of the stored "
    "conversations. With FILE: each conversation of the file is one window. With --error: which "
    "rule an error is about. Exits with 1 if any would be rejected, else with 3 if a part of a "
    "file could not be read."
)


# Faults that end with the next message of the user: the window of a file is not sent next.
NEXT = ("answer_at_the_end",)


class Complaint(NamedTuple):
    """A finding of the doctor: the window of a conversation breaks a rule of a provider.

    - `conversation`: the name or the id of the conversation.
    - `severity`: "refused" or "mishandled"; or "conditional" if the provider's answer depends on
      something else, such as the model.
    - `message`: the problem in words.
    """

    conversation: str
    provider: str
    rule: str
    severity: str
    message: str


def add_arguments(parser: ArgumentParser) -> None:
    add_file_arguments(parser, "*")
    parser.add_argument(
        "--provider",
        choices=list(PROVIDERS),
        help="check for this provider only; default: each provider, or the providers in use",
    )
    parser.add_argument(
        "--model", help="the model of --provider: some rules hold for some models only"
    )
    parser.add_argument(
        "--error",
        metavar="FILE",
        help="a file with an error of a provider: find the rule of this error; - is stdin",
    )
    parser.add_argument(
        "--policies",
        default="",
        help="replay the files under these policies, and tell which prompts would be rejected; "
        "such as message_window:10,message_window:10,snap_to_user=true",
    )
    parser.add_argument(
        "--laws",
        action="store_true",
        help="print each rule of each provider, and what is found in the bad and in the "
        "good example of the rule",
    )
    add_json_argument(parser, "finding")


def report(options: Options, printer: Printer, words: Words = NO_WORDS) -> int:
    if options["model"] and not options["provider"]:
        raise InvalidValue("--model needs --provider")
    if options["error"]:
        return print_recognized(options["error"], printer)
    if options["laws"]:
        return print_laws(printer)
    if options["policies"]:
        return print_refused(options, providers_of(options), printer)
    return print_complaints(_of_files(options, printer), printer) or printer.code


def providers_of(options: Options) -> Sequence[str]:
    return [options["provider"]] if options["provider"] else list(PROVIDERS)


def _of_files(options: Options, printer: Printer) -> Iterator[Complaint]:
    for each in transcripts(options["files"], options["format"], printer):
        name = each.name or str(each.number)
        for provider in providers_of(options):
            for found in lint(each.messages, provider=provider, model=options["model"]):
                if found.rule in NEXT:
                    continue
                yield Complaint(name, provider, found.rule, found.severity, found.message)


def complaint_words(provider: str, severity: str, message: str, rule: str) -> str:
    """Return a finding as a line of text: `OpenAI, refused: The result has no call. [orphan]`"""
    return f"{PROVIDERS[provider]}, {severity}: {message} [{rule}]"


def print_complaints(complaints: Iterable[Complaint], printer: Printer) -> int:
    """Print each finding. Then print for how many conversations the window would be rejected, and
    for how many it would only be mishandled. Returns 1 if a provider would reject a window, else 0.
    """
    found: dict[str, set[str]] = {"refused": set(), "mishandled": set(), "conditional": set()}
    for each in complaints:
        found[each.severity].add(each.conversation)
        words = complaint_words(each.provider, each.severity, each.message, each.rule)
        printer.row(each._asdict(), f"{each.conversation}: {words}")
    refused = found["refused"]
    only_mishandled = len(found["mishandled"] - refused)
    printer.total(
        {"refused": len(refused), "mishandled": only_mishandled},
        f"{len(refused):,} would be rejected; {only_mishandled:,} only mishandled",
    )
    return 1 if refused else 0


def print_recognized(file: str, printer: Printer) -> int:
    """Print the provider rules whose known error text matches an error. If no rule matches, print a
    sentence about the error. `file` is the path of a file with the error, or "-" for stdin. Always
    returns 0.

    Raises InvalidValue if the file cannot be read.
    """
    try:
        error = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8", "replace")
    except OSError as problem:
        raise InvalidValue(f"{file} cannot be read: {problem.strerror}") from problem
    found = recognized(error)
    for each in found:
        at = None if each.at is None else each.at + 1
        row = {"rule": each.rule.id, "provider": each.provider, "message": at}
        where = f", at message {at} of the request" if at else ""
        why = f"{each.rule.title}{where} [{each.rule.id}]"
        ways = [*map("repair {}".format, each.rule.repairs), each.rule.prevention]
        printer.row(
            {**row, "repairs": each.rule.repairs, "prevention": each.rule.prevention},
            "\n  ".join([f"{PROVIDERS[each.provider]}: {why}", *filter(None, ways)]),
        )
    rules = "1 rule" if len(found) == 1 else f"{len(found):,} rules"
    known = f"this error matches {rules}" if found else _other(error)
    printer.total({"known": len(found)}, known)
    return 0


def _other(error: str) -> str:
    """Return a sentence about an error that matches no rule."""
    if found := too_long(error):
        had = (
            f"{found.tokens:,} tokens"
            if found.tokens is not None
            else "the error does not say how many tokens the prompt has"
        )
        fits = f"; a limit of at most {found.fits:,} fits" if found.fits is not None else ""
        return f"the prompt is too long: {had}{fits}"
    if rate_limited(error):
        return "a rate limit was exceeded: wait, and send the same request again"
    place = place_in(error)
    return "this error matches no rule" + (f"; the error names {place.path}" if place else "")
