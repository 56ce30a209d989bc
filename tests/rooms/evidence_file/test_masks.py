"""What the kinds of masks find, and what they leave: docs/masks.md is written from these forms.

`WRITE_MASKS=1 pytest tests/rooms/evidence_file/test_masks.py` writes its tables anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from inspector.rooms.evidence_file.kinds import KINDS
from inspector.rooms.evidence_file.masking import Choice, Masker

from .blind_forms import OTHERS, SENTENCES
from .forms import FORMS, NONE, ON_REQUEST, listed

DOCS = Path(__file__).parents[3] / "docs/masks.md"
BEGIN, END = "<!-- made by tests/rooms/evidence_file/test_masks.py -->\n", "<!-- end -->"
MARK = re.compile(r"\[redacted [^\]]*\]")
PERSONAL = frozenset(KINDS) - {*ON_REQUEST}
# Of the forms of personal data that are found, and of the other texts that are left
FOUND, LEFT = 0.98, 0.98


def masked(text: str, *kinds: str, words: tuple[str, ...] = ()) -> str:
    return Masker(Choice(frozenset(kinds), words)).text(f"so {text} it is")


def is_found(kind: str, form: str) -> bool:
    return f"[redacted {kind} " in masked(form, kind)


def missed(kind: str) -> list[str]:
    return [form for form in listed(FORMS[kind]) if not is_found(kind, form)]


def taken(name: str) -> list[str]:
    return [text for text in listed(NONE[name]) if MARK.search(masked(text, *PERSONAL))]


def code(texts: list[str]) -> str:
    return ", ".join(f"`{each.replace('|', chr(92) + '|')}`" for each in texts)


def tables() -> str:
    forms = {kind: listed(lines) for kind, lines in FORMS.items()}
    others = {name: listed(lines) for name, lines in NONE.items()}
    lines = ["| kind | forms | found | such as | not found |", "|---|--:|--:|---|---|"]
    for kind, each in forms.items():
        not_found = missed(kind)
        shown = code([form for form in each if form not in not_found][:3])
        found = len(each) - len(not_found)
        lines.append(f"| {kind} | {len(each)} | {found} | {shown} | {code(not_found)} |")
    lines += ["", "| no personal data | texts | masked | such as | masked all the same |"]
    lines.append("|---|--:|--:|---|---|")
    for name, each in others.items():
        wrong = taken(name)
        lines.append(f"| {name} | {len(each)} | {len(wrong)} | {code(each[:3])} | {code(wrong)} |")
    found, left = rates()
    lines += ["", f"Found: {found:.1%} of the forms. Left alone: {left:.1%} of the other texts."]
    return "\n".join([*lines, ""])


def rates() -> tuple[float, float]:
    forms = [(kind, form) for kind, lines in FORMS.items() for form in listed(lines)]
    found = sum(is_found(kind, form) for kind, form in forms)
    others = sum(len(listed(lines)) for lines in NONE.values())
    wrong = sum(len(taken(name)) for name in NONE)
    return found / len(forms), 1 - wrong / others


def test_the_docs_say_what_each_kind_finds():
    before, rest = DOCS.read_text("utf-8").split(BEGIN)
    written = f"{before}{BEGIN}{tables()}{END}{rest.partition(END)[2]}"
    if os.environ.get("WRITE_MASKS"):
        DOCS.write_text(written, "utf-8")
    assert DOCS.read_text("utf-8") == written


def test_nearly_all_personal_data_is_found_and_nearly_nothing_else():
    assert [len(listed("\n".join(each.values()))) for each in (FORMS, NONE)] == [200, 200]
    found, left = rates()
    assert (found >= FOUND, left >= LEFT) == (True, True), (found, left)


def test_what_others_wrote_is_masked_as_well():
    """With all kinds, or without numbers and ids for those that have kinds of their own."""
    left = {
        sentence: rest
        for kind, lines in SENTENCES.items()
        for sentence in listed(lines)
        if (rest := rest_of(sentence, KINDS if kind in ON_REQUEST else PERSONAL))
    }
    taken = [
        text
        for lines in OTHERS.values()
        for text in listed(lines)
        if MARK.search(masked(text, *PERSONAL))
    ]
    sentences, others = (len(listed("\n".join(each.values()))) for each in (SENTENCES, OTHERS))
    assert min(sentences, others) >= 200
    assert 1 - len(left) / sentences >= FOUND, left
    assert 1 - len(taken) / others >= LEFT, taken


def rest_of(sentence: str, kinds: Iterable[str]) -> list[str]:
    """Return the parts of what a sentence has in brackets that are still in its masked form."""
    secret = sentence.partition("[[")[2].partition("]]")[0]
    rest = re.findall(r"\w+", MARK.sub(" ", masked(re.sub(r"\[\[|\]\]", "", sentence), *kinds)))
    return [part for part in re.findall(r"\w+", secret) if part in rest and not part.isalpha()]


@pytest.mark.parametrize("kind", [each for each in FORMS if each not in ("ip", "id", "token")])
def test_no_digit_of_what_is_found_is_left(kind):
    for form in listed(FORMS[kind]):
        if is_found(kind, form):
            rest = MARK.sub("", masked(form, kind))
            assert not any(map(str.isdecimal, rest)), rest


@pytest.mark.parametrize(
    "text",
    [
        *("123-45-6789", "555-123-4567", "(555) 123-4567", "192.168.17.5", "Nr.1234567"),
        "4111.1111.1111.1111",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fw",
    ],
)
def test_with_every_kind_nothing_of_it_is_left(text):
    assert MARK.sub("", masked(text, *KINDS)).strip(" .") in ("so  it is", "so Nr. it is")


@pytest.mark.parametrize(
    "text",
    [
        *("Ada Lovelace", "Ada\nLovelace", "Ada\u00a0Lovelace", "Ada  Lovelace", "ADA LOVELACE"),
        *("Ada\u200b Love\u200blace", "Ada&nbsp;Lovelace", "Ada&#32;Lovelace", "Ada\\nLovelace"),
        *("Ada%20Lovelace", "Ada+Lovelace", "Ａｄａ　Ｌｏｖｅｌａｃｅ", "Ada\r\n\tLovelace"),
    ],
)
def test_a_typed_word_is_found_however_it_is_spaced(text):
    assert masked(text, words=("Ada Lovelace",)) == "so [redacted word #A1] it is"


@pytest.mark.parametrize(
    ("word", "text"),
    [
        *(("José", "Jose\u0301"), ("Jose\u0301", "JOSÉ"), ("José", "Jos&eacute;")),
        *(("José", "Jos\\u00e9"), ("Straße", "STRASSE"), ("strasse", "Straße")),
        *(("O'Neil", "O’Neil"), ("“quoted”", '"quoted"'), ("ﬁne", "fine"), ("José", "Jos%C3%A9")),
        *(("a & b", "a &amp; b"), ("<x>", "&lt;x&gt;"), ("漢字", "漢字"), ("ё", "Ё")),
    ],
)
def test_a_typed_word_is_found_however_it_is_written(word, text):
    assert masked(text, words=(word,)) == "so [redacted word #A1] it is"


def test_what_stands_around_a_term_stays_as_it_was_written():
    text = "Ｆｕｌｌ ﬁt &amp; Jose\u0301 — “Ada  Lovelace” says\u00a0ß"
    expected = text.replace("Ada  Lovelace", "[redacted word #A1]")
    assert Masker(Choice(words=("ada lovelace",))).text(text) == expected


def test_a_term_across_the_edge_is_masked_whole():
    masker = Masker(Choice(frozenset({"card"}), ("Lovelace",)))
    text = "x" * 95 + " 4012 8888 8888 1881 and more"
    assert masker.text(text, 100) == "x" * 95 + " [redacted card #A1]"
    assert masker.text("y" * 96 + "Lovelace", 100) == "y" * 96 + "[redacted word #A2]"
    assert masker.text("short", 100) == "short"


def test_equal_terms_have_equal_marks_however_they_are_written():
    text = "4012 8888 8888 1881, 4012-8888-8888-1881, Ada  Lovelace, ADA LOVELACE, Ada+Lovelace"
    found = Masker(Choice(frozenset({"card"}), ("ada lovelace",)))
    assert re.findall(r"#A\d", found.text(text)) == ["#A1", "#A1", "#A2", "#A2", "#A2"]
    assert found.found == {"card": 1, "word": 1}


def test_terms_of_the_other_kinds_are_counted_and_left():
    masker = Masker(Choice(frozenset({"mail"})), counts_others=True)
    text = "ada@example.org, 4012 8888 8888 1881 and 4012-8888-8888-1881, DOB 1990-11-02"
    assert masker.text(text) == text.replace("ada@example.org", "[redacted mail #A1]")
    assert (masker.found, masker.left) == (
        {"mail": 1},
        {"card": 1, "date of birth": 1},
    )
    assert Masker(Choice()).left == {}
