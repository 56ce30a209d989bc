"""Reports which exact terms were lost by the summaries in agents' sessions."""

from __future__ import annotations

from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chatmemory.exceptions import ChatMemoryError, InvalidValue
from chatmemory.messages.json_values import JsonDict
from chatmemory.printing import Options, Printer, add_json_argument
from chatmemory.recall.compactions import (
    APPENDED,
    TAILS,
    Evidence,
    Level,
    NeededTerm,
    ReturnedBy,
    SessionPath,
    corpus_evidence,
    headline,
)
from chatmemory.recall.facts import NO_WORDS, Words
from chatmemory.reports.files import add_file_arguments, transcript_files, transcripts_of

HELP = (
    "Tell which exact terms the summaries of agents' sessions lost although they were needed "
    "again. The files are not stored, and no database is needed."
)

IN_JSON = {"appended": (25, 50), "tail": (20_000,)}
BACK = {
    ReturnedBy.TOOL: "came back from a tool",
    ReturnedBy.USER: "repeated by the user",
    ReturnedBy.UNKNOWN: "no recorded mention",
}


@dataclass
class Total:
    """The sums over all measured compactions. Only the exact terms of one `Level` are counted.

    - `compactions`: the number of compactions.
    - `needed`: how many exact terms the assistant used again after a compaction. `held`: how many
      of these terms were still in memory.
    - `appended[n]`: how many needed terms would have been in memory with n lost terms appended to
      each summary.
    - `tail[n]`: how many needed terms are in the last n tokens of the window before the compaction.
    - `back`: how many needed terms were no longer in memory, by who mentioned the term again
      (`ReturnedBy`): a tool, the user, or nobody in the transcript.
    """

    compactions: int = 0
    needed: int = 0
    held: int = 0
    appended: Counter[int] = field(default_factory=Counter)
    tail: Counter[int] = field(default_factory=Counter)
    back: Counter[ReturnedBy] = field(default_factory=Counter)

    def add(self, found: Evidence, level: Level) -> None:
        self.compactions += 1
        self.needed += len(found.needed(level))
        self.held += found.held(level)
        self.appended.update({terms: found.held(level, terms) for terms in APPENDED})
        self.tail.update({tokens: found.in_tail(tokens, level) for tokens in TAILS})
        self.back.update(each.back for each in found.lost(level))


def add_arguments(parser: ArgumentParser) -> None:
    add_file_arguments(parser, "+")
    parser.add_argument(
        "--level",
        choices=[each.value for each in Level],
        help="the terms to count. all: all exact terms; told: terms that a user or a tool "
        "mentioned before the assistant; rare: terms of told that at most two sessions mention; "
        "default: rare, and told for fewer than five sessions",
    )
    add_json_argument(parser, "compaction")


def report(options: Options, printer: Printer, words: Words = NO_WORDS) -> int:
    sessions = list(sessions_of(options["files"], options["format"], printer))
    if not sessions:
        raise InvalidValue("none of the files holds a session of an agent")
    corpus = corpus_evidence(sessions, words)
    level = Level(options["level"] or headline(corpus.sessions))
    total = Total()
    for path, found in corpus.found:
        if found.why_left_out:
            where = f"compaction {found.number} of {path.name}"
            printer.error(f"left out {where}: {found.why_left_out}")
            continue
        total.add(found, level)
        printer.row(_row(path, found, level), *evidence_words(path.name, found, level))
    _print_total(total, level, printer)
    return 0


def sessions_of(paths: Sequence[Path], format: str, printer: Printer) -> Iterator[SessionPath]:
    """Yield the sessions in files and folders. If the user went back to an earlier message, the
    session has several paths through its messages. Each path is one item. All paths of a session
    have the same name.

    A file that cannot be read, or whose format has no sessions, is reported and left out.
    """
    for place, file in enumerate(transcript_files(paths)):
        name = root = ""
        try:
            for each in transcripts_of(file.path, format, printer):
                if each.session is None:
                    raise InvalidValue(f"{file.path}: its format does not record compactions")
                if not each.is_branch:
                    name = each.name or str(each.number)
                    root = f"{place}:{each.number}"
                yield SessionPath(root, name, each.session)
        except ChatMemoryError as error:
            printer.error(f"left out {error}")


def _print_total(total: Total, level: Level, printer: Printer) -> None:
    sums: JsonDict = {
        "level": level.value,
        "compactions": total.compactions,
        "needed": total.needed,
        "held": total.held,
    }
    others = {
        name: {str(each): getattr(total, name)[each] for each in IN_JSON[name]} for name in IN_JSON
    }
    held = (
        f"{total.compactions:,} compactions: the summaries hold {total.held:,} of "
        f"{_terms(total.needed, level)} that were needed again; "
        f"{_instead(total.appended, total.tail)}"
    )
    ways = ", ".join(f"{total.back[way]:,} {words}" for way, words in BACK.items())
    lost = f"{total.needed - total.held:,} lost: {ways}"
    printer.total(sums | others, held, lost)


def _row(path: SessionPath, found: Evidence, level: Level) -> JsonDict:
    return {
        "session": path.name,
        "n": found.number,
        "tokens_before": found.compaction.tokens_before,
        "tokens_after": found.compaction.tokens_after,
        "replaced": len(found.compaction.covered),
        "needed": len(found.needed(level)),
        "held": found.held(level),
        "lost": list(map(_lost, found.lost(level))),
        "appended": {str(terms): found.held(level, terms) for terms in IN_JSON["appended"]},
        "tail": {str(tokens): found.in_tail(tokens, level) for tokens in IN_JSON["tail"]},
    }


def _lost(term: NeededTerm) -> JsonDict:
    return_number = None if term.came is None else term.came + 1
    numbers = {"said": term.said + 1, "used": term.used + 1, "came": return_number}
    return {"term": term.term, **numbers, "back": term.back.value}


def evidence_words(name: str, found: Evidence, level: Level) -> Iterator[str]:
    """Yield the lines to print about one compaction of the session `name`. The first line says how
    many needed terms were still in memory. Each further line is about one lost term. `level` says
    which terms count.
    """
    one = found.compaction
    tokens = " became ".join(
        "an unknown number" if each is None else f"{each:,}"
        for each in (one.tokens_before, one.tokens_after)
    )
    appended = {terms: found.held(level, terms) for terms in APPENDED}
    tail = {each: found.in_tail(each, level) for each in TAILS}
    yield (
        f"{name}: compaction "
        f"{found.number}{f' ({one.trigger})' if one.trigger else ''}, {tokens} "
        f"tokens, {len(one.covered):,} messages replaced: the summary holds "
        f"{found.held(level):,} of {_terms(len(found.needed(level)), level)} that "
        f"were needed again; {_instead(appended, tail)}"
    )
    for term in found.lost(level):
        return_words = "" if term.came is None else f" in #{term.came + 1}"
        yield (
            f"  lost {term.term}, said in #{term.said + 1}, used in #{term.used + 1}: "
            f"{BACK[term.back]}{return_words}"
        )


def _terms(count: int, level: Level) -> str:
    kind = "" if level is Level.ALL else f" {level}"
    return f"{count:,}{kind} exact {'term' if count == 1 else 'terms'}"


def _instead(appended: Mapping[int, int], tail: Mapping[int, int]) -> str:
    terms = ", ".join(f"{held:,} with {each} terms" for each, held in appended.items())
    tokens = ", ".join(f"{held:,} in the last {each:,} tokens" for each, held in tail.items())
    return f"{terms}; {tokens}"
