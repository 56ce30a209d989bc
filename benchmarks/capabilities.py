"""The whole in one table: each capability with its lines, and the lines of its tests.

    python -m benchmarks.capabilities

Each file that is installed belongs to one part, by its path. Migrations of the kernel are a part.
Lines are of Python, HTML, CSS and JavaScript, comments and blank lines included. The map of
docs/architecture.md is made of this table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).parents[1]
PRODUCT = ("chatmemory", "inspector", "pytest_chatmemory", "templates", "static")
SUFFIXES = {".py", ".html", ".css", ".js"}

KERNEL, FILES, API, SHELL, ROOMS = "kernel", "libraries for files", "API", "shell", "rooms"
LAYERS = (KERNEL, FILES, API, SHELL, ROOMS)
WHAT = {
    KERNEL: "decides, writes, reads, explains and verifies",
    FILES: "work without Django",
    API: "REST, and who may do what",
    SHELL: "the site: overview, conversation page, accounts, server",
    ROOMS: "capabilities that can be removed",
}
OF_FILES = {"formats", "integrations", "lint", "recall", "reports", "strategies", "testing"}
OF_THE_API = {"api", "access"}
MIGRATIONS = "migrations"


@dataclass
class Lines:
    """The lines of a part: of the product, and of its tests."""

    product: int = 0
    tests: int = 0


def part_of(path: Path) -> tuple[str, str]:
    """Return the layer and the part of a file of the product or of the tests."""
    top, *folders = path.parts[:-1]
    if "migrations" in folders and "rooms" not in folders:
        return KERNEL if top == "chatmemory" else SHELL, MIGRATIONS
    if "rooms" in folders:
        below = folders[folders.index("rooms") + 1 :]
        return ROOMS, below[0] if below else "all"
    name = folders[0] if folders else ""
    if top in ("templates", "static"):
        return SHELL, folders[1] if top == "templates" and len(folders) > 1 else top
    if top == "tests":
        return _part_of_tests(name)
    if top == "pytest_chatmemory":
        return FILES, "testing"
    if top == "inspector":
        return SHELL, name or "the folder itself"
    return _part_of_kernel(name)


def _part_of_kernel(name: str) -> tuple[str, str]:
    layer = FILES if name in OF_FILES else API if name in OF_THE_API else KERNEL
    return layer, name or "the folder itself"


def _part_of_tests(name: str) -> tuple[str, str]:
    """Return the part of a folder of tests: the folder with its name, or the whole."""
    if (ROOT / "chatmemory" / name).is_dir() and name:
        return _part_of_kernel(name)
    return (SHELL, "all") if name in ("inspector", "browser", "golden", "mounted") else ("", "")


def files_of(*folders: str) -> Iterator[Path]:
    """Yield the files of text in some folders, relative to the root."""
    for folder in folders:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in SUFFIXES and "__pycache__" not in file.parts:
                yield file.relative_to(ROOT)


def lines_of(path: Path) -> int:
    return len((ROOT / path).read_text("utf-8").splitlines())


def counted() -> dict[tuple[str, str], Lines]:
    """Return the lines of each part, by layer and name. Tests of several parts have neither."""
    found: defaultdict[tuple[str, str], Lines] = defaultdict(Lines)
    for path in files_of(*PRODUCT):
        found[part_of(path)].product += lines_of(path)
    for path in files_of("tests"):
        found[part_of(path)].tests += lines_of(path)
    return dict(found)


def sums(parts: dict[tuple[str, str], Lines]) -> dict[str, Lines]:
    """Return the lines of each layer; those of tests of several layers have the name ""."""
    found: defaultdict[str, Lines] = defaultdict(Lines)
    for (layer, _), lines in parts.items():
        found[layer].product += lines.product
        found[layer].tests += lines.tests
    return dict(found)


def table() -> Iterator[str]:
    """Yield the lines of the table, in Markdown."""
    parts = counted()
    yield "| layer | part | product | tests |"
    yield "|---|---|--:|--:|"
    for layer in (*LAYERS, ""):
        own = {name: lines for (of, name), lines in parts.items() if of == layer}
        for name, lines in sorted(own.items(), key=lambda item: -item[1].product):
            named = f"{layer or 'the whole'} | {name}"
            yield f"| {named} | {lines.product:,} | {lines.tests:,} |"
    whole = sums(parts).values()
    product, tests = sum(each.product for each in whole), sum(each.tests for each in whole)
    yield f"| together | | {product:,} | {tests:,} |"


# The map of docs/architecture.md


def drawn() -> Iterator[str]:
    """Yield the lines of the map: the layers with their parts, each with its size in hundreds of
    lines.
    """
    parts, of_layers = counted(), sums(counted())
    for layer in reversed(LAYERS):
        yield f"{layer}: {WHAT[layer]}: {hundreds(of_layers[layer].product)}"
        own = sorted(
            (
                (lines.product, name)
                for (of, name), lines in parts.items()
                if of == layer and lines.product
            ),
            reverse=True,
        )
        # Lines break behind a dot
        words = (
            f"{name} {hundreds(product)} ·".replace(" ", "\N{NO-BREAK SPACE}")
            for product, name in own
        )
        text = fill(" ".join(words), 100, initial_indent="    ", subsequent_indent="    ")
        yield text.removesuffix("\N{NO-BREAK SPACE}·").replace("\N{NO-BREAK SPACE}", " ")


def hundreds(lines: int) -> str:
    """Return a number of lines, rounded: it need not be written anew with each change."""
    return f"{max(100, round(lines, -2)):,}"


if __name__ == "__main__":
    print("\n".join(table()))
