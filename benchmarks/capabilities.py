"""The spread of each capability over the code, before it was a room and after, and the kernel's
lines.

python -m benchmarks.capabilities              # today's commit beside the one before the rooms
python -m benchmarks.capabilities COMMIT       # one commit
python -m benchmarks.capabilities --files lab  # the files of a capability, of today's commit

A room has the files in its folders. Before it was a room, FILES lists its files. Foreign files are
Python files outside of a capability, except migrations and tests, that import one of its modules,
also through a package that re-exports its names, or that name one of its templates. Templates that
include one of its templates count, too.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from io import BytesIO
from pathlib import PurePosixPath
from tarfile import open as open_tar

BEFORE = "33025a39"
ROOM = re.compile(r"(?:inspector|templates|static|tests)/rooms/([^/]+)/")
OUTSIDE_OF_THE_KERNEL = frozenset(
    {"formats", "frameworks", "integrations", "lint", "recall", "reports", "testing", "api"}
)

_COMMANDS = "chatmemory/management/commands"
_PAGE = "templates/inspector/conversation"
# The files of a capability that is not a room yet. A file belongs to the first one that lists it.
FILES: Mapping[str, tuple[str, ...]] = {
    "lessons": (
        "inspector/lessons/*",
        "inspector/views/lessons.py",
        "inspector/views/playground.py",
        "chatmemory/queries/rehearsal.py",
        "templates/inspector/lessons/*",
        "static/inspector/*/lessons.*",
        "tests/lessons/*",
        "tests/browser/test_lessons.py",
    ),
    "observability": (
        "inspector/observability/*",
        "tests/inspector/test_observability.py",
    ),
    "agents": ("chatmemory/mcp.py", f"{_COMMANDS}/mcp.py", "tests/test_mcp.py"),
    "live": (
        "inspector/live/*",
        "chatmemory/live.py",
        "static/inspector/js/live.js",
        "static/inspector/js/stream.js",
        "tests/live/*",
        "tests/browser/test_live.py",
    ),
    "search": (
        "chatmemory/search/sqlite.py",
        "chatmemory/search/postgresql.py",
        "chatmemory/ledger/indexing.py",
        "tests/test_search.py",
    ),
    "phrase": (
        "chatmemory/core/phrases.py",
        "chatmemory/queries/phrase.py",
        "chatmemory/explain/phrase.py",
        "inspector/conversation/phrase.py",
        "inspector/conversation/phrase_answers.py",
        "inspector/conversation/found.py",
        f"{_PAGE}/_why_phrase.html",
        "tests/explain/test_phrase.py",
        "tests/inspector/test_find.py",
    ),
    "integrity": (
        "chatmemory/ledger/chain.py",
        "tests/ledger/test_chain.py",
        "tests/test_alterations.py",
    ),
    "erasure": (
        "chatmemory/ledger/redaction.py",
        "chatmemory/services/erasure.py",
        "chatmemory/services/branches.py",
        f"{_COMMANDS}/purge_memories.py",
        f"{_PAGE}/redact.html",
        "templates/inspector/overview/delete.html",
        "tests/test_branches.py",
        "tests/test_erasure.py",
        "tests/test_erasure_in_files.py",
        "tests/ledger/test_tombstones.py",
    ),
    "transfer": (
        "chatmemory/queries/archives.py",
        "chatmemory/services/archives.py",
        "chatmemory/services/imports.py",
        "chatmemory/services/fingerprints.py",
        "chatmemory/ledger/lines.py",
        f"{_COMMANDS}/export_conversations.py",
        f"{_COMMANDS}/import_transcripts.py",
        "inspector/views/transfer.py",
        "static/inspector/js/upload.js",
        "templates/inspector/transfer/*",
        "tests/test_archives.py",
        "tests/test_import*.py",
        "tests/inspector/test_transfer.py",
        "tests/browser/test_transfer.py",
    ),
    "settings": (
        "chatmemory/services/defaults.py",
        "inspector/forms/settings.py",
        "inspector/views/settings.py",
        "templates/inspector/settings/*",
        "templates/inspector/accounts/tokens.html",
        "tests/inspector/test_settings.py",
        "tests/inspector/test_tokens_page.py",
    ),
    "lab": (
        "chatmemory/queries/lab.py",
        "chatmemory/queries/recall.py",
        "chatmemory/reports/recall.py",
        f"{_COMMANDS}/recall.py",
        "inspector/lab/*",
        "inspector/views/lab.py",
        "static/inspector/css/lab.css",
        "templates/inspector/lab/*",
        "tests/api/test_recall.py",
        "tests/inspector/test_lab*.py",
        "tests/browser/test_lab.py",
        "tests/test_recall_command.py",
    ),
    "simulation": (
        "chatmemory/api/views/trials.py",
        "chatmemory/queries/simulation.py",
        "chatmemory/services/trials.py",
        "inspector/conversation/simulation.py",
        "inspector/forms/composer.py",
        "inspector/views/compare.py",
        "static/inspector/js/composer.js",
        f"{_PAGE}/_composer.html",
        f"{_PAGE}/_drafts.html",
        f"{_PAGE}/_simbar.html",
        "tests/api/test_simulation.py",
        "tests/inspector/test_compare*.py",
        "tests/inspector/test_simulate.py",
        "tests/test_trials.py",
    ),
    "repairs": (
        "chatmemory/ledger/repairing.py",
        "chatmemory/services/repair.py",
        "templates/inspector/doctor/repair*.html",
    ),
    "doctor": (
        "chatmemory/explain/doctor.py",
        f"{_COMMANDS}/doctor.py",
        "chatmemory/queries/diagnosis.py",
        "chatmemory/queries/doctor.py",
        "chatmemory/reports/doctor.py",
        "inspector/doctor.py",
        "inspector/views/doctor.py",
        "static/inspector/js/faults.js",
        f"{_PAGE}/_providers.html",
        f"{_PAGE}/_verdict.html",
        "templates/inspector/doctor/*",
        "tests/browser/test_doctor.py",
        "tests/test_diagnosis.py",
        "tests/test_doctor.py",
        "tests/test_every_rule.py",
    ),
    "evidence": (
        "chatmemory/explain/incidents.py",
        f"{_COMMANDS}/compactions.py",
        f"{_COMMANDS}/incidents.py",
        "chatmemory/queries/compactions.py",
        "chatmemory/queries/incidents.py",
        "chatmemory/reports/compactions.py",
        "chatmemory/reports/incidents.py",
        "chatmemory/services/compaction.py",
        "chatmemory/services/findings.py",
        "inspector/conversation/covering.py",
        "inspector/conversation/evidence.py",
        "inspector/conversation/incident.py",
        "static/inspector/css/incidents.css",
        f"{_PAGE}/_evidence.html",
        f"{_PAGE}/_incident*.html",
        f"{_PAGE}/compact.html",
        "templates/inspector/overview/_again.html",
        "tests/api/test_incidents.py",
        "tests/browser/test_incidents.py",
        "tests/inspector/test_evidence_card.py",
        "tests/inspector/test_incident_card.py",
        "tests/inspector/test_said_again.py",
        "tests/test_compaction*.py",
        "tests/test_incidents.py",
        "tests/test_stored_evidence.py",
    ),
}


@dataclass(frozen=True)
class Tree:
    """The text files of a commit by path."""

    texts: Mapping[str, str]

    @classmethod
    def of(cls, commit: str) -> Tree:
        """Read a commit. Raises CalledProcessError if it is not in the repository."""
        folders = ("chatmemory", "inspector", "templates", "static", "tests")
        command = ["git", "archive", commit, *folders]
        packed = subprocess.run(command, check=True, capture_output=True).stdout
        found = {}
        with open_tar(fileobj=BytesIO(packed)) as archive:
            for member in archive.getmembers():
                if member.name.endswith((".py", ".html", ".css", ".js")):
                    file = archive.extractfile(member)
                    found[member.name] = file.read().decode() if file else ""
        return cls(found)

    @cached_property
    def modules(self) -> dict[str, str]:
        """The paths of the modules of the code by name."""
        paths = (path for path in self.texts if _is_code(path) and path.endswith(".py"))
        return {_module_name(path): path for path in paths}

    @cached_property
    def parsed(self) -> dict[str, ast.Module]:
        return {path: ast.parse(self.texts[path]) for path in self.modules.values()}

    @cached_property
    def exports(self) -> dict[str, dict[str, str]]:
        """The modules of each package's names."""
        return {
            module: {
                alias.asname or alias.name: node.module
                for node in self.parsed[path].body
                if isinstance(node, ast.ImportFrom) and node.module
                for alias in node.names
            }
            for module, path in self.modules.items()
            if path.endswith("__init__.py")
        }

    def lines(self, paths: Iterable[str]) -> int:
        return sum(len(self.texts[path].splitlines()) for path in paths)

    def capability_of(self, path: str) -> str | None:
        """Return the room or the capability that a file belongs to, or None."""
        if room := ROOM.match(path):
            return room[1]
        return next((name for name, globs in FILES.items() if _matches(path, globs)), None)

    def imported(self, path: str) -> set[str]:
        """Return the paths of the modules that a file imports, at its top or in a function."""
        found, names = set(), {}
        for node in ast.walk(self.parsed[path]):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    names[alias.asname or alias.name] = self._source(node.module, alias.name)
        for node in ast.walk(self.parsed[path]):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                package = names.get(node.value.id)
                if package in self.exports:
                    found.add(self._source(package, node.attr))
        return {self.modules[name] for name in found.union(names.values()) if name in self.modules}

    def _source(self, module: str, name: str) -> str:
        """Return the module that defines a name which is imported from another module."""
        if f"{module}.{name}" in self.modules:
            return f"{module}.{name}"
        source = self.exports.get(module, {}).get(name)
        return self._source(source, name) if source else module

    def named_templates(self, path: str) -> set[str]:
        names = re.findall(r'"((?:inspector|rooms)/[^"{}]+\.html)"', self.texts[path])
        return {f"templates/{name}" for name in names}


def _is_code(path: str) -> bool:
    return path.startswith(("chatmemory/", "inspector/")) and "/migrations/" not in path


def _module_name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _matches(path: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(path, glob) for glob in globs)


@dataclass(frozen=True)
class Spread:
    """The size of a capability, the number of its folders, and of the files that it is tied to.

    `room` is the part of `python` in the room's folder. The rest is in files of FILES that are not
    the room's, such as reports that need no Django.
    """

    python: int
    room: int
    templates: int
    tests: int
    folders: int
    foreign: int


def spreads(tree: Tree) -> dict[str, Spread]:
    """Return the spread of each capability, first of the ones in FILES."""
    owners = {path: owner for path in tree.texts if (owner := tree.capability_of(path))}
    foreign = _foreign(tree, owners)
    names = [*FILES, *sorted(set(owners.values()) - FILES.keys())]
    found = {}
    for name in names:
        own = [path for path, owner in owners.items() if owner == name]
        if not own:
            continue
        tests = [path for path in own if path.startswith("tests/")]
        code = [path for path in own if _is_code(path) and path.endswith(".py")]
        found[name] = Spread(
            python=tree.lines(code),
            room=tree.lines(path for path in code if ROOM.match(path)),
            templates=tree.lines(path for path in own if path.endswith(".html")),
            tests=tree.lines(tests),
            folders=len({_folder(path) for path in own}),
            foreign=foreign[name],
        )
    return found


def _folder(path: str) -> str:
    """Return the folder of a file, or the room's folder for all files below it."""
    room = ROOM.match(path)
    return room[0] if room else str(PurePosixPath(path).parent)


def _foreign(tree: Tree, owners: Mapping[str, str]) -> Counter[str]:
    """Return the number of foreign files that each capability is tied to."""
    ties: set[tuple[str, str]] = set()
    for path in tree.texts:
        if path in tree.parsed:
            named = tree.imported(path) | tree.named_templates(path)
        elif path.startswith("templates/"):
            named = tree.named_templates(path)
        else:
            continue
        ties |= {(owner, path) for each in named if (owner := owners.get(each))}
    return Counter(owner for owner, path in ties if owners.get(path) != owner)


def kernel(tree: Tree) -> dict[str, int]:
    """Return the lines of the kernel by folder: all of chatmemory but formats, frameworks, lint,
    recall, reports, assertions for tests, the API, migrations, and `distribution.py`.
    """
    found: Counter[str] = Counter()
    for path in tree.modules.values():
        top, *folders, file = path.split("/")
        is_outside = not OUTSIDE_OF_THE_KERNEL.isdisjoint(folders) or file == "distribution.py"
        if top == "chatmemory" and not is_outside:
            found["/".join([top, *folders[:1]])] += tree.lines([path])
    return dict(sorted(found.items()))


def table(trees: Mapping[str, Tree]) -> Iterator[str]:
    """Yield the lines of the tables of capabilities and of the kernel, in Markdown."""
    found = {name: spreads(tree) for name, tree in trees.items()}
    names = list(dict.fromkeys(name for each in found.values() for name in each))
    yield "| capability | commit | Python | room | templates | tests | folders | foreign files |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|"
    for name in names:
        for commit, of in found.items():
            if each := of.get(name):
                python = f"{each.python:,} | {each.room:,}"
                lines = f"{python} | {each.templates:,} | {each.tests:,}"
                yield f"| {name} | {commit} | {lines} | {each.folders} | {each.foreign} |"
    yield ""
    sums = {name: kernel(tree) for name, tree in trees.items()}
    yield "| kernel | " + " | ".join(sums) + " |"
    yield "|---|" + "--:|" * len(sums)
    for folder in sorted(set().union(*sums.values())):
        yield f"| {folder} | " + " | ".join(f"{of.get(folder, 0):,}" for of in sums.values()) + " |"
    yield "| together | " + " | ".join(f"{sum(of.values()):,}" for of in sums.values()) + " |"


def main(*arguments: str) -> None:
    match arguments:
        case ["--files", name]:
            tree = Tree.of("HEAD")
            lines = [path for path in tree.texts if tree.capability_of(path) == name]
        case [commit]:
            lines = list(table({commit: Tree.of(commit)}))
        case _:
            lines = list(table({"before": Tree.of(BEFORE), "today": Tree.of("HEAD")}))
    print("\n".join(lines))


if __name__ == "__main__":
    main(*sys.argv[1:])
