"""Transcripts in the field's formats: pure readers and writers that say what they lost.

read_transcripts(text)            a whole file, its format detected or named
parse_messages(values, format)    one list of messages
render_messages(messages, format)
"""

from chatmemory.formats.base import Loss, Refused, Rendered, Transcript
from chatmemory.formats.registry import (
    FORMATS,
    Reading,
    parse_messages,
    read_transcripts,
    render_messages,
)

__all__ = [
    "FORMATS",
    "Loss",
    "Reading",
    "Refused",
    "Rendered",
    "Transcript",
    "parse_messages",
    "read_transcripts",
    "render_messages",
]
