"""Every declared pattern takes time in line with the length of a text, of whatever shape.

Texts of 60 kB are tried by `make test`, texts of 600 kB by `make attack`. A pattern that runs over
shorter texts only (`most`) is tried on its longest.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from time import process_time

import pytest

from chatmemory.known_models import names_of_models
from chatmemory.lint import limits, recognition
from chatmemory.lint.catalog import RULES
from chatmemory.patterns import DECLARED, Declared
from chatmemory.reading import history
from chatmemory.recall import cost, facts, phrases, term_search
from inspector.rooms.evidence_file import masking
from inspector.rooms.live import stream

from ..architecture.test_layers import modules, parsed
from .texts import MORE, SHAPES, text_of

TWICE = 2.5  # times as long, at most, for a text of twice the length
TELLING = 0.02  # seconds; shorter times cannot be compared
SIZES = [
    pytest.param(60_000, id="60 kB"),
    pytest.param(600_000, id="600 kB", marks=pytest.mark.long),
]

ALL = [*SHAPES, *(pytest.param(each, marks=pytest.mark.long) for each in MORE)]

AnyPattern = re.Pattern[str] | re.Pattern[bytes]


def answers() -> list[str]:
    laws = (law for rule in RULES.values() for law in rule.laws.values())
    return list(dict.fromkeys(law.error for law in laws))


def of_models() -> Iterator[AnyPattern]:
    laws = [law for rule in RULES.values() for law in rule.laws.values()]
    known = [names for each in cost.providers().values() for names in each.least_of]
    of_laws = (each for law in laws for each in (law.refusing, law.taking, law.sure))
    for names in dict.fromkeys(filter(None, (*of_laws, *known))):  # each once
        yield names_of_models(names)


def of_fields() -> Iterator[AnyPattern]:
    yield from map(limits._shape, ("[a-zA-Z0-9]{9}", "[a-zA-Z0-9_-]+"))


def of_numbers() -> Iterator[AnyPattern]:
    stream._number({"query_string": b"after=1"}, b"after")
    yield DECLARED["a number in an address"].pattern


def of_facts() -> Iterator[AnyPattern]:
    words = facts.Words(terms=("A-1", "blue car"), prefixes=("SKU-", "-", "a"))
    pattern = facts._pattern(words)
    assert pattern
    yield pattern


def of_phrases() -> Iterator[AnyPattern]:
    found = phrases.refusals(), phrases.introductions(), phrases.introductions_behind()
    yield from (each.all for each in found)
    yield from (each.reminders for each in phrases.languages())
    yield phrases.own_phrases(("as i said",))
    yield phrases.all_nouns()._sign_pattern


def of_masks() -> Iterator[AnyPattern]:
    yield masking.words_pattern(["a a", "1-1", "a"])


# An example of each family, or several: patterns that are built from words
EXAMPLES: dict[str, Callable[[], Iterator[AnyPattern]]] = {
    "a number in an address": of_numbers,
    "a part of a phrase": lambda: (history._part(each) for each in ("a", "a a", "1-")),
    "a term": lambda: (term_search._alone(each) for each in ("a", "-", "1.1", "a@a")),
    "an answer": lambda: (recognition._pattern(each)[0] for each in answers()),
    "facts": of_facts,
    "names of models": of_models,
    "phrases": of_phrases,
    "patterns of the settings": lambda: iter([facts._own(r"\b[A-Z]{2}-\d+\b")]),
    "words to mask": of_masks,
    "the shape of a field": of_fields,
}


# They need frameworks that have an environment of their own, and declare no pattern.
OF_FRAMEWORKS = {
    f"chatmemory.strategies.{name}"
    for name in ("agent_framework", "google_adk", "langchain", "llama_index", "openai_agents")
}


@cache
def declared() -> dict[str, Declared]:
    """Return all patterns that modules declare when they are imported."""
    for name in modules():
        if not name.endswith("__main__") and name not in OF_FRAMEWORKS:
            import_module(name)
    return {key: each for key, each in DECLARED.items() if not each.family}


def seconds(pattern: AnyPattern, text: str) -> float:
    """Return the CPU for finding all matches of a pattern, and for comparing it with all."""
    began = process_time()
    if isinstance(pattern.pattern, bytes):
        for _ in pattern.finditer(text.encode()):  # type: ignore[arg-type]
            pass
        pattern.fullmatch(text.encode())  # type: ignore[arg-type]
    else:
        for _ in pattern.finditer(text):  # type: ignore[arg-type]
            pass
        pattern.fullmatch(text)  # type: ignore[arg-type]
    return process_time() - began


def growth(pattern: AnyPattern, text_with: Callable[[int], str], most: int) -> str:
    """Return how a pattern's time grows too fast up to `most` characters; "" if it does not.

    Short texts come first, so that a pattern that would take hours is found in seconds.
    """
    for size in (most // part for part in (64, 8, 1)):
        whole = seconds(pattern, text_with(size))
        if whole > TELLING and (told := _too_fast(pattern, text_with, size, whole)):
            return told
    return ""


def _too_fast(pattern: AnyPattern, text_with: Callable[[int], str], size: int, whole: float) -> str:
    """Compare the time for a `whole` text with the best for half of it. What seems too fast is
    looked at more closely: a busy machine is no quadratic pattern.
    """
    half = _best(pattern, text_with(size // 2), 3)
    for _ in range(3):
        if whole <= max(TELLING, TWICE * half):
            return ""
        half, whole = (_best(pattern, text_with(n), 7) for n in (size // 2, size))
    if whole <= max(TELLING, TWICE * half):
        return ""
    return f"{half:.3f} s became {whole:.3f} s for {size:,} characters"


def _best(pattern: AnyPattern, text: str, times: int) -> float:
    """Return the least of several times: other processes add to a time, and never take from it."""
    taken = [seconds(pattern, text)]
    while len(taken) < times and sum(taken) < 1:
        taken.append(seconds(pattern, text))
    return min(taken)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shape", ALL)
def test_every_pattern_is_linear(shape, size):
    found = {
        key: growth(each.pattern, lambda n: text_of(shape, n), min(size, each.most))
        for key, each in declared().items()
    }
    assert {key: told for key, told in found.items() if told} == {}
    assert len(found) > 90


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", EXAMPLES)
def test_every_pattern_that_is_built_from_words_is_linear(family, size):
    for pattern in EXAMPLES[family]():
        for shape in SHAPES:
            told = growth(pattern, lambda n, shape=shape: text_of(shape, n), size)
            assert told == "", (pattern.pattern, shape)


@pytest.mark.long
def test_every_answer_is_looked_for_in_line_with_an_error_that_repeats_it():
    for answer in answers():
        pattern, _ = recognition._pattern(answer)
        for end in (1, 2, 4):
            words = answer[: len(answer) // end] or "?"
            repeated = lambda n, words=words: (f"{words} " * (n // len(words) + 1))[:n]  # noqa: E731
            assert growth(pattern, repeated, 60_000) == "", (answer, words)


def test_a_quadratic_pattern_is_found():
    assert growth(re.compile(r"[\w.]+@"), lambda n: text_of("one long word", n), 60_000)
    assert not growth(re.compile(r"(?<![\w.])[\w.]++@"), lambda n: text_of("@", n), 60_000)


def test_every_family_has_an_example():
    assert set(EXAMPLES) == {name for file in modules().values() for name in families(parsed(file))}


def families(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "declared_pattern":
            for keyword in node.keywords:
                if keyword.arg == "family" and isinstance(keyword.value, ast.Constant):
                    yield keyword.value.value


def test_a_pattern_that_is_built_in_a_function_is_of_a_family():
    without = {
        name
        for name, file in modules().items()
        for function in ast.walk(parsed(file))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "declared_pattern"
        if all(each.arg != "family" for each in node.keywords)
    }
    assert without == set()
