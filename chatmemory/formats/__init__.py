"""Transcripts in the field's formats: pure readers and writers that say what they lost.

read_transcripts(text)            a whole file, its format detected or named
stream_transcripts(file)          the same, conversation by conversation
parse_messages(values, format)    one list of messages
parse_objects(values, format)     what a provider's library has
render_messages(messages, format)

A format is one `Format` in `FORMATS`; `Reader` and `Writer` are bases for writing one.
"""

from chatmemory.formats.conversion import Reader, Response, Said, Writer
from chatmemory.formats.format import (
    Format,
    Loss,
    RawTranscript,
    Refused,
    Rendered,
    Rendering,
    Transcript,
)
from chatmemory.formats.registry import (
    FORMATS,
    Reading,
    TranscriptStream,
    kept_in,
    parse_messages,
    parse_objects,
    read_transcripts,
    readable_formats,
    render_each,
    render_messages,
    stream_transcripts,
    two_way_formats,
    writable_formats,
)
from chatmemory.messages.codec import JsonBounds

__all__ = [
    "FORMATS",
    "Format",
    "JsonBounds",
    "Loss",
    "RawTranscript",
    "Reader",
    "Reading",
    "Refused",
    "Rendered",
    "Rendering",
    "Response",
    "Said",
    "Transcript",
    "TranscriptStream",
    "Writer",
    "kept_in",
    "parse_messages",
    "parse_objects",
    "read_transcripts",
    "readable_formats",
    "render_each",
    "render_messages",
    "stream_transcripts",
    "two_way_formats",
    "writable_formats",
]
