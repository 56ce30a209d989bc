"""Types of command-line arguments."""

from __future__ import annotations

from argparse import ArgumentTypeError


def port_number(text: str) -> int:
    """Reads a TCP port. Raises ArgumentTypeError."""
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ArgumentTypeError(f"a port is a number from 1 to 65535, not {text!r}")
    return int(text)
