"""A model call before it is stored: request, response, and the tokens that the provider counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from chatmemory.messages.json_values import JsonMap


class Source(StrEnum):
    """The way by which a model call came to this site: the recorder, or a trace span in the
    convention of OpenInference or of OpenTelemetry (GenAI).
    """

    RECORDER = "recorder"
    OPENINFERENCE = "openinference"
    GENAI = "genai"


class Usage(NamedTuple):
    """Tokens as the provider counted them. A count that the provider did not send is None.

    `input` includes the tokens read from the prompt cache (`cached`) and the tokens written to it
    (`written`). `output` includes `reasoning`.
    """

    input: int | None = None
    cached: int | None = None
    written: int | None = None
    output: int | None = None
    reasoning: int | None = None


NOT_COUNTED = Usage()


@dataclass(frozen=True)
class SentRequest:
    """The request of a model call: its JSON, and how it was sent.

    - `style` names the way in which the JSON was written, so that its bytes can be written again
      (see `spelling`). "" if the bytes are not known.
    - `headers` are the recorded headers of the request and of its answer.
    - `is_exact` means that `request` is complete, as it was sent.
    - `removed` is the number of secrets that were removed from the call. A request without its
      secrets is not exact.
    """

    request: JsonMap
    style: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    is_exact: bool = True
    removed: int = 0


@dataclass(frozen=True)
class ReceivedAnswer:
    """The answer to a request.

    - `response` is the JSON of the answer; None if there is no normal response.
    - `usage` are the tokens that the provider counted.
    - `finish` is the provider's word for why the answer ended.
    - `error` says why there is no normal response, or is "".
    - `duration` is in seconds; None if unknown.
    """

    response: JsonMap | None = None
    usage: Usage = NOT_COUNTED
    finish: str = ""
    error: str = ""
    duration: float | None = None


NOTHING_RECEIVED = ReceivedAnswer()


@dataclass(frozen=True)
class NewCall:
    """A model call that is not yet stored.

    - `key` identifies the call: calls with the same key are stored once.
    - `format` is the provider's format of the JSON in the request and the response.
    - `at` is the time at which the call began.
    - `provider` and `model` are names, or "" if unknown.
    - `session` is the name that the app gives to the conversation, or "".
    - `sender` is the name of the instrumentation that sent the call to this site; "" for the
      recorder.
    """

    key: str
    source: Source
    format: str
    sent: SentRequest
    at: datetime
    received: ReceivedAnswer = NOTHING_RECEIVED
    provider: str = ""
    model: str = ""
    session: str = ""
    sender: str = ""


COUNT_MAX = 2**53


def count_in(value: object) -> int | None:
    """Return `value`, which a program sent, if it is a valid number of tokens; else None."""
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < COUNT_MAX
    return value if is_count else None  # type: ignore[return-value]  # mypy does not see that a count is an int


class DropReason(StrEnum):
    """A reason why a model call was not stored, such as `too_large`."""

    NO_MESSAGES = "no_messages"
    HIDDEN = "hidden"
    DROPPED_ATTRIBUTES = "dropped_attributes"
    PER_MESSAGE_EVENTS = "per_message_events"
    UNREADABLE = "unreadable"
    ENCODING = "encoding"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    INVALID = "invalid"
    REFUSED = "refused"
    PASSED = "passed"
    UNWRITTEN = "unwritten"


class Dropped(NamedTuple):
    """A number of calls (`count`) that were not stored, for one reason (`why`).

    - `sender` says where the calls came from, such as the instrumentation, or what was wrong, such
      as the encoding. It is "" if unknown.
    - `key` identifies a call that may still be stored later. Once the call is stored, it no longer
      counts as dropped. `key` is "" if the call is not expected again.
    """

    why: DropReason
    sender: str = ""
    key: str = ""
    count: int = 1  # type: ignore[assignment]  # hides tuple.count, which nothing here calls


class Remedy(NamedTuple):
    """What people are told about calls that were not stored for one reason.

    - `what` is the reason, as words that follow a number of calls. For example, `without messages`
      follows "3 calls".
    - `how` says what to do, such as which variable to set.
    """

    what: str
    how: str


REMEDIES: Mapping[DropReason, Remedy] = {
    DropReason.NO_MESSAGES: Remedy(
        "without messages",
        "Set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only in the app. A provider’s "
        "own library may trace each call a second time, without messages: this second trace does "
        "no harm.",
    ),
    DropReason.HIDDEN: Remedy(
        "with hidden content",
        "Unset OPENINFERENCE_HIDE_INPUTS, or instrument the agent with include_content=True.",
    ),
    DropReason.DROPPED_ATTRIBUTES: Remedy(
        "that lost attributes in the app",
        "Set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000 in the app: its SDK drops all but the newest "
        "128 attributes of a span.",
    ),
    DropReason.PER_MESSAGE_EVENTS: Remedy(
        "sent as one event per message",
        "Use opentelemetry-instrumentation-genai-openai instead of "
        "opentelemetry-instrumentation-openai-v2, or set "
        "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only.",
    ),
    DropReason.UNREADABLE: Remedy(
        "whose messages cannot be read", "chatmemory cannot read the format of these messages."
    ),
    DropReason.ENCODING: Remedy(
        "in an encoding that cannot be decoded",
        "Let the program or its provider’s library send requests without this Content-Encoding.",
    ),
    DropReason.TOO_LARGE: Remedy(
        "in bodies larger than the limit",
        "For spans, raise INSPECTOR['OTLP_BYTES'], or set OTEL_BSP_MAX_EXPORT_BATCH_SIZE=16 in the "
        "app. The recorder stores at most 32 MB of a request, and passes on the rest.",
    ),
    DropReason.TOO_MANY: Remedy(
        "beyond the first 1,000 of one request",
        "Set OTEL_BSP_MAX_EXPORT_BATCH_SIZE=512 in the app.",
    ),
    DropReason.INVALID: Remedy(
        "in records that OpenTelemetry’s protocol does not allow",
        "Update the app’s exporter, or the collector between them.",
    ),
    DropReason.REFUSED: Remedy(
        "that could not be stored",
        (
            "Read the cause in the log. Files of the recorder are kept in calls/refused of the "
            "data folder."
        ),
    ),
    DropReason.PASSED: Remedy(
        "passed on without being recorded",
        "The recorder stores requests for answers of models, and passes on all other requests.",
    ),
    DropReason.UNWRITTEN: Remedy(
        "that the recorder could not write to its disk",
        "Free disk space for the recorder’s folder, or choose another folder with --spool.",
    ),
}
