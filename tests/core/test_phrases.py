from __future__ import annotations

import pytest

from chatmemory.core.phrases import has_phrase, phrase_place


@pytest.mark.parametrize(
    ("text", "phrase", "hit"),
    [
        ("Wo ist das Paket?", "paket", "Paket"),
        ("İİİİ wo ist das Paket?", "Paket", "Paket"),
        ("Ist İZMİR weit?", "i̇zmi̇r", "İZMİR"),
        ("ΟΔΟΣΤΡΩΜΑ", "οδος", "ΟΔΟΣ"),
        ("a", "a", "a"),
    ],
)
def test_the_place_of_a_phrase_is_that_of_the_text_as_it_was_written(text, phrase, hit):
    assert has_phrase(text, phrase)
    assert text[phrase_place(text, phrase)] == hit


def test_what_is_not_in_a_text_has_no_place():
    assert not has_phrase("İstanbul", "Paket")
    assert phrase_place("İstanbul", "Paket") is None
