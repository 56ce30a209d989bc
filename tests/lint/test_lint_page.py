"""docs/rules.md. `WRITE_RULES=1 .venv/bin/pytest` of this file writes its tables."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from chatmemory import Finding, lint
from chatmemory.formats import parse_objects
from chatmemory.lint import PROVIDERS, Rule
from chatmemory.lint.catalog import RULES
from chatmemory.lint.linter import example, outline
from chatmemory.reports.laws import tried_laws

PAGE = Path(__file__).parents[2] / "docs/rules.md"
LETTERS = {"refused": "R", "conditional": "c", "mishandled": "m"}
# How requests are recorded: the format of the messages, and the provider.
EXCHANGES = {
    "openai-chat": ("openai_chat", "openai"),
    "openai-responses": ("openai_responses", "openai_responses"),
    "anthropic-messages": ("anthropic", "anthropic"),
}


def check_page(name: str, lines: Iterable[str]) -> None:
    """Compare lines with the lines between two comments of the page."""
    made = "".join(f"{line}\n" for line in lines)
    before, mark, rest = PAGE.read_text("utf-8").partition(f"<!-- {name} -->\n")
    known, end, after = rest.partition("<!-- end -->")
    if "WRITE_RULES" in os.environ:
        PAGE.write_text(before + mark + made + end + after, "utf-8")
    else:
        assert known == made


def worst(found: Iterable[Finding]) -> str:
    severities = {each.severity for each in found}
    return next((each for each in ("refused", "mishandled") if each in severities), "clean")


def test_recorded_exchanges_are_refused_as_they_were(data_file):
    """All accepted requests are accepted. Of the refused ones, each whose error is about messages
    is found, in the words of the error.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    errors = {}
    for each in json.loads(data_file("provider_exchanges.json").read_text("utf-8")):
        if each["format"] in EXCHANGES:
            format, provider = EXCHANGES[each["format"]]
            found = lint(parse_objects(each["request"], format).messages, provider=provider)
            is_accepted = each["status"] < 400
            counts[provider, "accepted" if is_accepted else "refused", worst(found)] += 1
            for finding in () if is_accepted else found:
                errors[finding.rule] = (finding.error, each["response"]["error"]["message"])
    assert not any(counts[provider, "accepted", "refused"] for provider in PROVIDERS)
    errors.pop("system_role")  # of a request that asked for what the model does not have
    assert errors.keys() == {"lone_reasoning", "unsupported_file", "developer_role"}
    assert all(ours == theirs for ours, theirs in errors.values())
    rows = ["| provider | its answer | clean | mishandled | refused |", "|---|---|---|---|---|"]
    for provider, was in sorted({key[:2] for key in counts}):
        said = [counts[provider, was, how] for how in ("clean", "mishandled", "refused")]
        rows.append(f"| {PROVIDERS[provider]} | {was} | {' | '.join(map(str, said))} |")
    check_page("exchanges", rows)


def test_each_law_gives_its_verdict_on_both_examples_as_the_command_prints_it():
    laws = list(tried_laws())
    assert len(laws) == sum(len(rule.laws) for rule in RULES.values())
    assert not [each for each in laws if not each.holds]


def test_the_rules_are_documented():
    rows = [f"| rule | {' | '.join(PROVIDERS.values())} | repairs |", "|---" * 9 + "|"]
    for rule in RULES.values():
        letters = [
            LETTERS[rule.laws[each].severity] if each in rule.laws else "" for each in PROVIDERS
        ]
        repairs = ", ".join(f"`{each}`" for each in rule.repairs)
        link = f"[{rule.title}](#{rule.id})"
        rows.append(f"| {link} | {' | '.join(letters)} | {repairs} |")
    check_page("rules", rows)
    check_page("each rule", (line for rule in RULES.values() for line in section(rule)))


def section(rule: Rule) -> Iterator[str]:
    yield f"### {rule.id}"
    yield f"{rule.title}."
    yield ""
    for name, law in rule.laws.items():
        answer = f": `{law.error}`" if law.error else ""
        answer = f": ``{law.error}``" if "`" in law.error else answer
        said = f"[{law.basis}]({law.source}), {law.dated}"
        yield f"- {PROVIDERS[name]} {law.severity} ({said}){answer}"
        yield from (f"  - {each}" for each in (law.condition, law.conflict) if each)
    provider = rule.example_provider
    for words, window in (("This is found:", rule.bad), ("This is not:", rule.good)):
        lines = outline(example(window, provider), provider) or ["(no messages)"]
        yield from ("", words, "", *(f"    {line}" for line in lines))
    yield ""
