"""Benchmarks measure what they can, and say what they cannot."""

from __future__ import annotations

from benchmarks import peers
from benchmarks.measuring import Elsewhere, in_turns


def test_a_call_elsewhere_tells_its_own_time():
    assert in_turns({"elsewhere": Elsewhere(lambda: 12.5)}, 3) == {"elsewhere": 12.5}


def test_without_the_other_libraries_their_figures_are_left_out_and_a_line_says_so(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(peers, "ENVIRONMENT", tmp_path)
    assert list(peers.figures(str(tmp_path))) == []
    assert "make bench-peers" in capsys.readouterr().out
