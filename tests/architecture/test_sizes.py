"""What is large says why it is left so: in a comment above it, `# Wide: …` or `# Long: …`."""

from __future__ import annotations

import pytest

from benchmarks.figures import Large, large_classes, long_files, reasons_above, wide_values

WORDS_MIN = 5  # "many fields" is no reason


def without_reason(found: list[Large]) -> set[str]:
    return {each.place for each in found if len(each.reason.split()) < WORDS_MIN}


@pytest.mark.parametrize("found", [long_files, large_classes, wide_values])
def test_what_is_large_has_its_reason_above_it(found):
    assert without_reason([*found()]) == set()


def test_a_reason_is_read_from_the_comment_directly_above():
    comment = ["# Wide: one field for", "# each column", "# Long: a public class"]
    both = {"Wide": "one field for each column", "Long": "a public class"}
    assert reasons_above(4, [*comment, "class A:"]) == both
    assert reasons_above(5, [*comment, "", "class A:"]) == {}
    assert reasons_above(5, [*comment, "a = 1", "class A:"]) == {}
    assert reasons_above(2, ["# It is wide", "class A:"]) == {}


def test_a_value_without_a_reason_is_named():
    assert without_reason([Large("a.py:A", "11 fields", "")]) == {"a.py:A"}
    assert without_reason([Large("a.py:A", "11 fields", "it has many fields")]) == {"a.py:A"}
    assert without_reason([Large("a.py:A", "11 fields", "one field for each column")]) == set()
