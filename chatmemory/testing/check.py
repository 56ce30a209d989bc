"""The command `chatmemory check`: assertions about recorded conversations under a policy, and a
comparison of their figures with a baseline.

`pytest_chatmemory` makes the same assertions in tests.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from chatmemory.exceptions import InvalidValue
from chatmemory.lint import PROVIDERS
from chatmemory.messages.texts import printable
from chatmemory.printing import Options, Printer, add_json_argument
from chatmemory.recall.compactions import Level
from chatmemory.recall.facts import NO_WORDS, Words
from chatmemory.reports.files import add_file_arguments
from chatmemory.reports.incidents import FORCED_NAME, KINDS
from chatmemory.testing import judging
from chatmemory.testing.asserting import read_runs
from chatmemory.testing.figures import Baseline, figures_of_runs, key_of, worsened
from chatmemory.testing.recorded import Recorded

HELP = (
    "Check recorded conversations in files against a policy: facts that leave "
    "memory and come up again, prompts that providers would reject, the cost of "
    "prompts, and figures that are worse than a baseline. Exits with 1 if a check "
    "fails, else with 3 if a part of a file could not be read. Without files, this "
    "is Django's own check of the installation."
)
ALL = "all conversations"


@dataclass(frozen=True)
class Check:
    """The result of one check: `sentences` about its failures, empty if it passed.

    `name` is the name of the check, and `conversation` the name of the checked conversation.
    """

    conversation: str
    name: str
    sentences: Sequence[str]


def add_arguments(parser: ArgumentParser) -> None:
    add_file_arguments(parser, "*")
    parser.add_argument(
        "--policy",
        help="the policy to check, such as token_window:4000,low_water=0.5, or everything",
        default="",
    )
    parser.add_argument(
        "--fail-on",
        metavar="KIND,KIND",
        default=FORCED_NAME,
        help=f"the kinds of incidents that fail the check: {FORCED_NAME}, "
        f"{', '.join(KINDS)}, or none; default: %(default)s, for facts that a user "
        "had to say again",
    )
    parser.add_argument(
        "--provider",
        action="append",
        default=[],
        choices=list(PROVIDERS),
        help="fail if this provider would reject a prompt; can be given several times",
    )
    parser.add_argument("--model", help="the model that gets the prompts")
    parser.add_argument(
        "--cost",
        type=float,
        metavar="SHARE",
        help="the largest cost of prompts, as a share of the cost of sending everything",
    )
    parser.add_argument(
        "--summary",
        type=float,
        metavar="SHARE",
        help="the least share of exact terms needed again that agents' summaries must hold",
    )
    parser.add_argument("--level", default=Level.RARE.value, choices=[*map(str, Level)])
    parser.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="fail if figures are worse than in this file; figures that the file lacks "
        "are added to it",
    )
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="write the results as JUnit XML to this file"
    )
    add_json_argument(parser, "check that failed")


def report(options: Options, printer: Printer, words: Words = NO_WORDS) -> int:
    if not options["policy"]:
        raise InvalidValue("name a --policy, such as token_window:4000, or everything")
    kinds = _kinds(options["fail_on"])
    runs = read_runs(
        options["files"],
        options["policy"],
        format=options["format"],
        words=words,
        left_out=lambda what: printer.left_out(what.removeprefix("left out ")),
    )
    if not runs:
        raise InvalidValue("none of the files holds a conversation")
    checks = [*_each(runs, kinds, options), *_together(runs, options, printer)]
    failed = [each for each in checks if each.sentences]
    for check in failed:
        row = {"conversation": check.conversation, "check": check.name}
        sentences = [f"{check.conversation}: {each}" for each in check.sentences]
        printer.row({**row, "sentences": list(check.sentences)}, *sentences)
    if options["junit"]:
        _write_junit(options["junit"], checks)
    sums = {"conversations": len(runs), "checks": len(checks), "failed": len(failed)}
    printer.total(
        sums,
        f"{len(runs):,} conversation{'' if len(runs) == 1 else 's'}; "
        f"{len(failed):,} of {len(checks):,} checks failed",
    )
    return 1 if failed else printer.code


def _kinds(text: str) -> frozenset[str]:
    names = [] if text == "none" else text.split(",")
    try:
        return judging.kinds_of(names)
    except InvalidValue as error:
        raise InvalidValue(f"--fail-on: {error}, {FORCED_NAME} or none") from error


def _each(runs: Sequence[Recorded], kinds: frozenset[str], options: Options) -> Iterator[Check]:
    for run in runs:
        if kinds:
            yield Check(run.name, "no incident", judging.incidents_in(run, kinds))
        if options["provider"]:
            found = judging.refused_by(run, options["provider"], options["model"])
            yield Check(run.name, "accepted by providers", found)


def _together(runs: Sequence[Recorded], options: Options, printer: Printer) -> Iterator[Check]:
    if options["cost"] is not None:
        yield Check(ALL, "cost", judging.cost_failure(runs, options["cost"], "openai"))
    if options["summary"] is not None:
        found = judging.not_in_summaries(runs, options["level"], options["summary"])
        yield Check(ALL, "summaries", found)
    if options["baseline"]:
        baseline = Baseline(options["baseline"])
        key = key_of(" ".join(map(str, options["files"])), runs)
        sentence = worsened(key, baseline.compare(key, figures_of_runs(runs)))
        yield Check(ALL, "baseline", [sentence] if sentence else [])
        if baseline.write():
            printer.error(f"added to the baseline {options['baseline']}: {key}")


def _write_junit(path: Path, checks: Sequence[Check]) -> None:
    """Write checks as JUnit XML. Raises InvalidValue if the file cannot be written."""
    failures = sum(bool(each.sentences) for each in checks)
    numbers = {"tests": str(len(checks)), "failures": str(failures), "errors": "0"}
    suites = ElementTree.Element("testsuites", numbers)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "chatmemory check", **numbers})
    for check in checks:
        names = {"classname": _xml(check.conversation), "name": check.name}
        case = ElementTree.SubElement(suite, "testcase", names)
        if check.sentences:
            first = check.sentences[0].splitlines()[0]
            failure = ElementTree.SubElement(case, "failure", {"message": _xml(first)})
            failure.text = _xml("\n".join(check.sentences))
    try:
        ElementTree.ElementTree(suites).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise InvalidValue(f"{path}: {error.strerror}") from error


def _xml(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    characters = (each if each >= " " or each in "\n\t" else " " for each in printable(text))
    return "".join(characters).replace("\ufffe", " ").replace("\uffff", " ")
