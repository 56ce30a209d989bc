"""Tests that need a room are left out where it is missing, and only there."""

from __future__ import annotations

from ..needs import ROOT, is_whole, missing_rooms


def test_in_a_whole_tree_no_file_of_tests_is_left_out():
    """What tests/rooms has besides rooms, such as `room_modules`, is no missing room."""
    left_out = [str(file) for file in ROOT.glob("tests/**/*.py") if missing_rooms(file)]
    assert left_out == [] or not is_whole()
