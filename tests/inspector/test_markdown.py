"""Answers that are copied as Markdown: a ticket shows them as they are, with one link."""

from __future__ import annotations

import pytest

from inspector.conversation.markdown import as_markdown, escaped


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("see https://evil.example/a_b?x=1, now", "see `https://evil.example/a_b?x=1`, now"),
        ("(www.evil.example).", "(`www.evil.example`)."),
        ("write to a_b@c.example!", "write to `a_b@c.example!`"),
        ("HTTP://x.example|<y>", r"`HTTP://x.example`\|\<y\>"),
        ("`https://x.example`", r"\``https://x.example`\`"),
        ("a: b // c @ada #1 *d*", r"a: b // c \@ada \#1 \*d\*"),
    ],
)
def test_an_address_is_code_and_a_mark_is_escaped(said, written):
    assert escaped(said) == written


def test_a_question_and_its_answer_have_no_bare_address():
    told = as_markdown("Why https://x.example?", ["at https://y.example"])
    assert told == "**Why `https://x.example`?**\n\n- at `https://y.example`"
