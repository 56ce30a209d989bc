"""Reads and writes transcripts in the formats of providers, libraries and agents. Every detail that
is lost is reported.

read_transcripts(text)            a whole file, its format detected or named
stream_transcripts(file)          the same, conversation by conversation
parse_messages(values, format)    one list of messages, as JSON values
parse_objects(values, format)     objects of a provider's library
render_messages(messages, format)

A format is one `Format` in `FORMATS`. For a format of your own, derive its reader from `Reader` and
its writer from `Writer`.
"""

from chatmemory.formats.format import (
    Format,
    Loss,
    RawTranscript,
    Refused,
    Rendered,
    Rendering,
    Response,
    Transcript,
)
from chatmemory.formats.readers_and_writers import Reader, ReadMessage, Writer
from chatmemory.formats.registry import (
    FORMATS,
    format_title,
    kept_in,
    parse_messages,
    parse_objects,
    readable_formats,
    render_each,
    render_messages,
    two_way_formats,
    writable_formats,
)
from chatmemory.formats.whole_files import (
    Reading,
    TranscriptStream,
    read_transcripts,
    stream_transcripts,
)
from chatmemory.messages.codec import JsonBounds

__all__ = [
    "FORMATS",
    "Format",
    "JsonBounds",
    "Loss",
    "RawTranscript",
    "ReadMessage",
    "Reader",
    "Reading",
    "Refused",
    "Rendered",
    "Rendering",
    "Response",
    "Transcript",
    "TranscriptStream",
    "Writer",
    "format_title",
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
