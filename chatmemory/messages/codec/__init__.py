"""Messages as JSON, as LangChain4j's ChatMessageSerializer writes and reads them.

Reading follows Jackson, LangChain4j's JSON library. Unknown properties are refused. Where a string
is expected, numbers and booleans become strings. Text after the first JSON value is ignored.

Written JSON is the same as LangChain4j's, byte for byte, except for two things. Attributes of a
user message keep their order; Jackson writes them in hash order. Floats have Java's notation, but
Python's digits.
"""

from chatmemory.messages.codec.frames import (
    GAP,
    frame_and_size,
    frame_of,
    message_from_frame,
    payload_of,
)
from chatmemory.messages.codec.json_text import (
    JsonBounds,
    JsonLine,
    check_density,
    check_names,
    decode_json,
    decoded,
    json_lines,
    load_json,
)
from chatmemory.messages.codec.reading import (
    message_from_dict,
    message_from_json,
    messages_from_json,
)
from chatmemory.messages.codec.writing import (
    Path,
    attributes_beside,
    bytes_of,
    message_to_dict,
    message_to_json,
    messages_to_json,
    path_text,
    split_attributes,
    stored_json,
    strings_of,
    without_attributes,
    write_json,
)
from chatmemory.messages.field_checks import DEPTH_MAX

__all__ = [
    "DEPTH_MAX",
    "GAP",
    "JsonBounds",
    "JsonLine",
    "Path",
    "attributes_beside",
    "bytes_of",
    "check_density",
    "check_names",
    "decode_json",
    "decoded",
    "frame_and_size",
    "frame_of",
    "json_lines",
    "load_json",
    "message_from_dict",
    "message_from_frame",
    "message_from_json",
    "message_to_dict",
    "message_to_json",
    "messages_from_json",
    "messages_to_json",
    "path_text",
    "payload_of",
    "split_attributes",
    "stored_json",
    "strings_of",
    "without_attributes",
    "write_json",
]
