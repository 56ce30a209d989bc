from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from chatmemory.conf import fact_words
from chatmemory.core.recall.compactions import (
    APPENDED,
    TAILS,
    CameBack,
    Evidence,
    Level,
    NeededTerm,
    compaction_evidence,
    terms_of,
)
from chatmemory.core.sessions import Session
from chatmemory.management.base import FileCommand, add_file_arguments, wrong_arguments

IN_JSON = {"appended": (25, 50), "tail": (20_000,)}
BACK = {
    CameBack.TOOL: "came back from a tool",
    CameBack.USER: "said again by the user",
    CameBack.UNKNOWN: "no recorded mention",
}


@dataclass
class Total:
    """The sums of the compactions that were measured."""

    compactions: int = 0
    needed: int = 0
    held: int = 0
    numbers: int = 0
    appended: Counter[int] = field(default_factory=Counter)
    tail: Counter[int] = field(default_factory=Counter)
    back: Counter[CameBack] = field(default_factory=Counter)

    def add(self, found: Evidence, level: Level) -> None:
        self.compactions += 1
        self.needed += len(found.needed(level))
        self.held += found.held(level)
        self.numbers += sum(each.is_number for each in found.lost(level))
        self.appended.update({terms: found.held(level, terms) for terms in APPENDED})
        self.tail.update({tokens: found.in_tail(tokens, level) for tokens in TAILS})
        self.back.update(each.back for each in found.lost(level))


class Command(FileCommand):
    help = (
        "Tell which exact terms the summaries of agents' sessions lost although they were needed "
        "again. The files are not stored, and no database is needed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_file_arguments(parser, "+")
        parser.add_argument(
            "--level",
            choices=[each.value for each in Level],
            default=Level.ALL.value,
            help="all terms (the default), those that the assistant had been told, or the rare "
            "ones of these, which at most two of the sessions mention",
        )
        parser.add_argument(
            "--json", action="store_true", help="print a line of JSON for each compaction"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        level, as_json, words = Level(options["level"]), options["json"], fact_words()
        sessions = list(self.sessions(options["files"], options["format"]))
        if not sessions:
            raise wrong_arguments("none of the files holds a session of an agent")
        mentions = Counter(term for _, each in sessions for term in terms_of(each, words))
        total = Total()
        for name, session in sessions:
            for found in compaction_evidence(session, mentions=mentions, words=words):
                if found.why_left_out:
                    where = f"compaction {found.number} of {name}"
                    self.stderr.write(f"left out {where}: {found.why_left_out}")
                    continue
                total.add(found, level)
                shown = json.dumps(_row(name, found, level)) if as_json else None
                self.stdout.write(shown or "\n".join(_in_words(name, found, level)))
        self.sum_up(total, level, as_json)

    def sessions(self, files: Sequence[Path], format: str) -> Iterator[tuple[str, Session]]:
        """Yield the sessions of files, and tell which files have none: folders have others, too."""
        for file in files:
            try:
                for each in self.transcripts_of(file, format):
                    if each.session is None:
                        raise wrong_arguments(f"{file}: its format does not record compactions")
                    yield each.name or str(each.number), each.session
            except CommandError as error:
                self.stderr.write(f"left out {error}")

    def sum_up(self, total: Total, level: Level, as_json: bool) -> None:
        sums = {"compactions": total.compactions, "needed": total.needed, "held": total.held}
        if as_json:
            others = {
                name: {str(each): getattr(total, name)[each] for each in IN_JSON[name]}
                for name in IN_JSON
            }
            self.stdout.write(json.dumps({"total": sums | others}))
            return
        self.stdout.write(
            f"{total.compactions:,} compactions: of {_terms(total.needed, level)} that were needed "
            f"again the summaries hold {total.held:,}; {_instead(total.appended, total.tail)}"
        )
        ways = ", ".join(f"{total.back[way]:,} {words}" for way, words in BACK.items())
        lost = total.needed - total.held
        self.stdout.write(f"{lost:,} lost: {total.numbers:,} are plain numbers; {ways}")


def _row(name: str, found: Evidence, level: Level) -> dict[str, Any]:
    return {
        "session": name,
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


def _lost(term: NeededTerm) -> dict[str, Any]:
    came = None if term.came is None else term.came + 1
    numbers = {"said": term.said + 1, "used": term.used + 1, "came": came}
    return {"term": term.term, **numbers, "back": term.back.value}


def _in_words(name: str, found: Evidence, level: Level) -> Iterator[str]:
    one = found.compaction
    tokens = " became ".join(
        "an unknown number" if each is None else f"{each:,}"
        for each in (one.tokens_before, one.tokens_after)
    )
    appended = {terms: found.held(level, terms) for terms in APPENDED}
    tail = {each: found.in_tail(each, level) for each in TAILS}
    yield (
        f"{name}: compaction {found.number}{f' ({one.trigger})' if one.trigger else ''}, "
        f"{tokens} tokens, {len(one.covered):,} messages replaced: of "
        f"{_terms(len(found.needed(level)), level)} that were needed again the summary holds "
        f"{found.held(level):,}; {_instead(appended, tail)}"
    )
    for term in found.lost(level):
        came = "" if term.came is None else f" in #{term.came + 1}"
        yield (
            f"  lost {term.term}, said in #{term.said + 1}, used in #{term.used + 1}: "
            f"{BACK[term.back]}{came}"
        )


def _terms(count: int, level: Level) -> str:
    kind = "" if level is Level.ALL else f" {level}"
    return f"{count:,}{kind} exact {'term' if count == 1 else 'terms'}"


def _instead(appended: Mapping[int, int], tail: Mapping[int, int]) -> str:
    terms = ", ".join(f"{held:,} with {each} terms" for each, held in appended.items())
    tokens = ", ".join(f"{held:,} in the last {each:,} tokens" for each, held in tail.items())
    return f"{terms}; {tokens}"
