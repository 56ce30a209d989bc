"""OpenHands: the events of a conversation, as a list or one JSON object a line. This format is only
read.

The SDK's events have a `kind`; events of version 0 have an `action` or an `observation`. A
condensation is a compaction: it names the events that left the window, and the position of its
summary. Source of the shapes: OpenHands/software-agent-sdk, openhands-sdk/openhands/sdk/event, and
OpenHands/OpenHands, openhands/events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from chatmemory.formats.account import NOTHING
from chatmemory.formats.conversion import dict_in, list_in, name_of, text_in
from chatmemory.formats.format import NOT_KNOWN, Format, Kinds, RawTranscript
from chatmemory.formats.records import records_in
from chatmemory.formats.sessions import SessionReader, part_texts, whole
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import Content, Image, ImageContent, TextContent
from chatmemory.messages.json_values import JsonDict, JsonList, JsonValue
from chatmemory.messages.message import AiMessage, SystemMessage, ToolExecutionRequest, UserMessage

NAME = "openhands"
_KINDS = {"SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent", "Condensation"}
_SILENT = ("change_agent_state", "condensation_request", "null", "recall", "")
_SILENT_RESULTS = ("agent_state_changed", "null", "recall", "")


def find(value: JsonValue) -> RawTranscript | None:
    """Return the events of a conversation: a list, or the `events` of an object. None if the value
    is in another format.
    """
    name = None
    if isinstance(value, dict) and "events" in value:
        name, value = name_of(value, "id", "conversation_id"), value["events"]
    events, is_known = records_in(value), False
    for each in events:
        if not _is_event(each):
            return None
        kind = each.get("kind")
        is_known |= isinstance(kind, str) and kind in _KINDS
        is_known |= "args" in each and "action" in each  # the first version
    return RawTranscript(name, events) if is_known else None


def _is_event(value: JsonValue) -> bool:
    return isinstance(value, dict) and "id" in value and "source" in value


def content_of(event: JsonValue) -> JsonValue:
    """Return the parts of an event whose words must be found in messages, or else are reported as
    lost. Events of the types in `SILENT` have none.
    """
    return NOTHING if type_of(event) in SILENT else _BESIDE.without(event)


# Properties of events. In version 0, the action and the observation are names.
_BESIDE = Beside(
    texts=(
        *("action", "observation", "security_risk", "message", "activated_skills", "reason"),
        "source",
    ),
    wholes=("extras", "llm_metrics", "tool_call_metadata", "tools", "critic_result"),
)


def type_of(event: JsonValue) -> str:
    """Return the kind of an event, or in version 0 its action or observation."""
    named = ("kind", "action", "observation")
    return next((each for name in named if isinstance(each := event.get(name), str)), "none")


# Events about a conversation, with the newest version of OpenHands that is known to write them.
SILENT = {
    **dict.fromkeys(("ConversationStateUpdateEvent", "CondensationRequest"), NOT_KNOWN),
    **dict.fromkeys(("CondensationSummaryEvent", "PauseEvent"), NOT_KNOWN),
    **dict.fromkeys((*_SILENT, *_SILENT_RESULTS), "version 0"),
}


class _Reader(SessionReader):
    """Reads the events of both versions: those of the SDK have a `kind`."""

    format = NAME

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[str, int] = {}  # the indices of messages by the ids of their events
        self._calls: dict[str, str | None] = {}  # the ids of calls by the ids of their events
        self._trigger: str | None = None

    def read(self, record: JsonDict) -> None:
        place = self.of_the_sdk(record) if "kind" in record else self.of_version_0(record)
        if place is not None:
            self._places[str(record.get("id"))] = place

    # The SDK

    def of_the_sdk(self, event: JsonDict) -> int | None:
        """Read an event, and return the index of its message, or None."""
        match event["kind"]:
            case "SystemPromptEvent":
                return self.system_prompt(event)
            case "MessageEvent":
                return self.message(event)
            case "ActionEvent":
                return self.action(event)
            case "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent":
                return self.observation(event)
            case "CondensationRequest":
                self._trigger = text_in(event, "reason")
            case "Condensation":
                self.forget(list_in(event, "forgotten_event_ids"), event)
            case "CondensationSummaryEvent":
                pass  # the condensation has the summary too
            case kind:
                self.miss(f"events of kind {kind!r}")
        return None

    def system_prompt(self, event: JsonDict) -> int | None:
        texts = part_texts([event.get("system_prompt"), event.get("dynamic_context")])
        self.lack("definitions of tools", len(list_in(event, "tools")))
        return self.add(SystemMessage("\n".join(texts))) if "".join(texts).strip() else None

    def message(self, event: JsonDict) -> int | None:
        message, own = dict_in(event, "llm_message"), self.own(_about(event))
        contents = _contents(message.get("content")) + _contents(event.get("extended_content"))
        if message.get("role") == "assistant":
            text = "\n".join(each.text for each in contents if isinstance(each, TextContent))
            return self.add(AiMessage(text, (), text_in(message, "reasoning_content"), own))
        if not contents:
            self.lack("messages without content")
            return None
        is_user = event.get("source") == "user"
        return self.add(UserMessage(contents, None, own), by_program=not is_user)

    def action(self, event: JsonDict) -> int:
        call = dict_in(event, "tool_call")
        call = dict_in(call, "function") or call
        name = text_in(call, "name") or text_in(event, "tool_name")
        arguments = call.get("arguments", event.get("action"))
        request = self.calls.request(text_in(event, "tool_call_id"), name, arguments)
        thought = part_texts(event.get("thought"))
        return self.call(event, request, thought, text_in(event, "llm_response_id"))

    def observation(self, event: JsonDict) -> int:
        """Read the result of a tool, a rejection by the user, or an error of the agent."""
        refused = event.get("rejection_reason", event.get("error"))
        observation = event.get("observation", refused)
        has_failed = event["kind"] != "ObservationEvent" or _is_error(observation)
        call = text_in(event, "tool_call_id")
        return self.result(call, _observed(observation), has_failed or None, _about(event))

    # Version 0

    def of_version_0(self, event: JsonDict) -> int | None:
        """Read an event, and return the index of its message, or None."""
        if event.get("observation") is not None:
            return self.observation_0(event)
        action, args = event.get("action"), dict_in(event, "args")
        if action == "condensation":
            self.forget(_forgotten(args, self._places), args)
            return None
        if action in ("system", "message") and isinstance(args.get("content"), str):
            return self.message_0(event, args["content"])
        if event.get("source") == "agent" and action not in (*_SILENT, None):
            return self.action_0(event, args)
        return None

    def observation_0(self, event: JsonDict) -> int | None:
        """Read the result of the call that caused the event, or what the program observed."""
        observation = event["observation"]
        if observation in _SILENT_RESULTS:
            return None
        content, about = _observed(event.get("content")), _about(event)
        if call := self._calls.get(str(event.get("cause"))):
            return self.result(call, content, observation == "error" or None, about)
        observed = UserMessage(content or f"[{observation}]", None, self.own(about))
        return self.add(observed, by_program=True)

    def message_0(self, event: JsonDict, text: str) -> int | None:
        if event["action"] == "system":
            return self.add(SystemMessage(text)) if text.strip() else None
        own = self.own(_about(event))
        if event.get("source") == "agent":
            return self.add(AiMessage(text, attributes=own))
        return self.add(UserMessage(text, None, own))

    def action_0(self, event: JsonDict, args: JsonDict) -> int:
        metadata = dict_in(event, "tool_call_metadata")
        name = text_in(metadata, "function_name") or str(event["action"])
        arguments = {name: value for name, value in args.items() if name != "thought"}
        request = self.calls.request(text_in(metadata, "tool_call_id"), name, arguments)
        thought = [text] if isinstance(text := args.get("thought"), str) and text else []
        return self.call(event, request, thought, dict_in(metadata, "model_response").get("id"))

    # Both

    def call(
        self,
        event: JsonDict,
        request: ToolExecutionRequest,
        thought: list[str],
        answer: str | None,
    ) -> int:
        """Add a call to the model's answer with the id `answer`, and return the answer's index."""
        self._calls[str(event.get("id"))] = request.id
        thinking, text = text_in(event, "reasoning_content"), "\n".join(thought) or None
        own = self.own(_about(event))
        return self.answer(AiMessage(text, (request,), thinking, own), answer)

    def forget(self, ids: Iterable[JsonValue], about: JsonDict) -> None:
        """Read a condensation. The summary of an earlier one is forgotten, too."""
        left = {place for id in ids if (place := self._places.get(str(id))) is not None}
        summary, trigger = text_in(about, "summary"), self._trigger
        self._trigger = None
        self.miss("events that a condensation removed without a summary", summary is None)
        self.compact(
            UserMessage(summary or "[no summary]"),
            kept=[place for place in self.built.window if place not in left | self.summaries()],
            ahead=whole(about.get("summary_offset")) or 0,
            trigger=trigger,
        )


def _about(event: JsonDict) -> JsonDict:
    """Return the details of an event besides its text."""
    names = ("id", "timestamp", "security_risk") if "kind" in event else ("id", "timestamp")
    return {name: event.get(name) for name in names}


def _forgotten(args: JsonDict, known: Iterable[str]) -> JsonList:
    """Return the ids that a condensation lists, or all ids from its first to its last."""
    named = args.get("forgotten_event_ids")
    first = whole(args.get("forgotten_events_start_id"))
    last = whole(args.get("forgotten_events_end_id"))
    if isinstance(named, list) or first is None or last is None:
        return list_in(args, "forgotten_event_ids")
    numbers = (id for id in known if id.isdecimal() and len(id) < 20)  # a limit of int()
    return [id for id in numbers if first <= int(id) <= last]


def _is_error(observation: JsonValue) -> bool:
    return isinstance(observation, dict) and observation.get("is_error") is True


def _observed(observation: JsonValue) -> JsonValue:
    """Return the result of a tool: its content or output, else the whole observation as JSON."""
    if isinstance(observation, dict):
        for name in ("content", "output"):
            if isinstance(observation.get(name), list):
                return _contents(observation[name])
            if isinstance(observation.get(name), str):
                return observation[name]
        return json.dumps(observation, ensure_ascii=False)
    return observation if isinstance(observation, str) else _contents(observation)


def _contents(parts: JsonValue) -> list[Content]:
    found: list[Content] = []
    for part in parts if isinstance(parts, list) else ():
        found += [TextContent(text) for text in part_texts([part])]
        urls = list_in(part, "image_urls")
        found += [ImageContent(Image(url=url)) for url in urls if isinstance(url, str)]
    return found


FORMAT = Format(
    NAME,
    find,
    _Reader.parse,
    is_record=_is_event,
    content_of=content_of,
    kinds=Kinds(type_of, SILENT),
)
