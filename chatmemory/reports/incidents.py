"""Reports incidents in files: facts and tool results that would have left memory under a policy,
and came up again.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from chatmemory.exceptions import InvalidValue
from chatmemory.printing import Options, Printer, add_json_argument
from chatmemory.recall.facts import NO_WORDS, Words
from chatmemory.recall.incidents import Incident, incident_to_dict, incident_words, incidents_under
from chatmemory.recall.kinds import IncidentKind, kind_named
from chatmemory.recall.sessions import said_messages
from chatmemory.reports.files import add_file_arguments, transcripts
from chatmemory.windows.written_policies import policy_from_text

HELP = (
    "Tell which facts left memory and came up again: in files, replayed under a "
    "policy without storing anything, or in stored conversations. Exits with 3 if "
    "a part of a file could not be read."
)
FORCED_NAME = "forced"
KINDS = tuple(kind.value for kind in IncidentKind)
ByConversation = Iterable[tuple[str, Sequence[Incident]]]  # the incidents of each conversation


def add_arguments(parser: ArgumentParser) -> None:
    add_file_arguments(parser, "*")
    parser.add_argument("--policy", help="the policy for the files, such as token_window:2000")
    parser.add_argument(
        "--stored", action="store_true", help="tell the incidents of all stored conversations"
    )
    add_json_argument(parser, "conversation")
    parser.add_argument(
        "--fail-on",
        metavar="KIND,KIND",
        default="",
        help="exit with 1 if there is an incident of these kinds: forced (what a user had to say "
        f"again), {', '.join(KINDS)}",
    )


def report(options: Options, printer: Printer, words: Words = NO_WORDS) -> int:
    found = print_incidents(_of_files(options, printer, words), printer, check(options))
    return found or printer.code


def check(options: Options) -> Sequence[str]:
    """Return the kinds of incidents that make the command fail, from the option `--fail-on`. Raises
    InvalidValue for invalid options.
    """
    if options["stored"] == bool(options["files"]):
        wrong = "files beside --stored" if options["stored"] else "nothing to report on"
        raise InvalidValue(
            f"{wrong}: give files and --policy, or --stored for the stored conversations"
        )
    if options["stored"] == bool(options["policy"]):
        raise InvalidValue("files need a --policy, and --policy needs files: give both, or neither")
    names = options["fail_on"].split(",") if options["fail_on"] else []
    try:
        return [name if name == FORCED_NAME else kind_named(name).value for name in names]
    except InvalidValue as error:
        raise InvalidValue(f"--fail-on: {error}, {FORCED_NAME}") from error


def _of_files(
    options: Options, printer: Printer, words: Words
) -> Iterator[tuple[str, Sequence[Incident]]]:
    policy = policy_from_text(options["policy"])
    for each in transcripts(options["files"], options["format"], printer):
        said = said_messages(each.messages, each.session)
        yield each.name or str(each.number), incidents_under(policy, said, words)


def print_incidents(conversations: ByConversation, printer: Printer, fail_on: Sequence[str]) -> int:
    """Print the incidents and their number. Returns 1 if there is an incident of a kind in
    `fail_on`, else 0.
    """
    total: Counter[str] = Counter(dict.fromkeys([FORCED_NAME, *KINDS, "conversations"], 0))
    for name, found in conversations:
        if found:
            total.update(each.kind for each in found)
            total[FORCED_NAME] += sum(each.is_forced for each in found)
            total["conversations"] += 1
            rows = [incident_to_dict(each) for each in found]
            lines = [f"{name}: {incident_words(each)}" for each in found]
            printer.row({"conversation": name, "incidents": rows}, *lines)
    counts = ", ".join(f"{total[kind]:,} {kind}" for kind in KINDS)
    counts += f"; {total[FORCED_NAME]:,} {FORCED_NAME}"
    printer.total(total, f"{counts}; conversations with any: {total['conversations']:,}")
    return 1 if any(total[kind] for kind in fail_on) else 0
