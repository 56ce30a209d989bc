"""OpenHands: the events of a conversation, as a list or one JSON object a line. This format is only
read.

Each event has an `id`, a `source` and a `timestamp`. Its other properties depend on the version. In
the newer version, the SDK, an event has a `kind`:

    {"kind": "SystemPromptEvent", "system_prompt": {"text": …}, "tools": […]}
    {"kind": "MessageEvent", "llm_message": {"role": "user", "content": [{"text": …}]}}
    {"kind": "ActionEvent", "thought": [{"text": …}], "tool_call_id": "c1",
     "tool_call": {"name": …, "arguments": …}, "llm_response_id": "r1"}
    {"kind": "ObservationEvent", "tool_call_id": "c1", "observation": {"content": [{"text": …}]}}
    {"kind": "Condensation", "forgotten_event_ids": ["e3", "e4"], "summary": …}

In version 0, an event has an `action` or an `observation`, and its id is a number:

    {"action": "system", "args": {"content": …}}
    {"action": "message", "args": {"content": …}}
    {"action": "run", "args": {"command": "ls", "thought": …},
     "tool_call_metadata": {"tool_call_id": "c1", "function_name": …, "model_response": {"id": …}}}
    {"observation": "run", "cause": 2, "content": …}
    {"action": "condensation", "args": {"forgotten_events_start_id": 2,
     "forgotten_events_end_id": 3, "summary": …}}

A condensation is a compaction. It names the events that left the window, and in `summary_offset`
the position of its summary. Source of the shapes: OpenHands/software-agent-sdk,
openhands-sdk/openhands/sdk/event, and OpenHands/OpenHands, openhands/events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from chatmemory.formats.account import NOTHING
from chatmemory.formats.format import NOT_KNOWN, Format, Kinds, RawTranscript
from chatmemory.formats.json_properties import dict_in, list_in, name_of, text_in
from chatmemory.formats.records import records_in
from chatmemory.formats.sessions import SessionReader, part_texts, whole
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import Content, Image, ImageContent, TextContent
from chatmemory.messages.json_values import JsonDict, JsonList, JsonValue
from chatmemory.messages.message import AiMessage, SystemMessage, ToolExecutionRequest, UserMessage

NAME = "openhands"
# The kinds by which a file of the SDK is recognized.
_SDK_KINDS = (
    *("SystemPromptEvent", "MessageEvent", "ActionEvent", "ObservationEvent"),
    "Condensation",
)
_SDK_SILENT = (
    *("ConversationStateUpdateEvent", "CondensationRequest", "CondensationSummaryEvent"),
    "PauseEvent",
)
_VERSION_0_SILENT_ACTIONS = ("change_agent_state", "condensation_request", "null", "recall", "")
_VERSION_0_SILENT_OBSERVATIONS = ("agent_state_changed", "null", "recall", "")
# Events about a conversation, with the newest version of OpenHands that is known to write them.
SILENT = {
    **dict.fromkeys(_SDK_SILENT, NOT_KNOWN),
    **dict.fromkeys((*_VERSION_0_SILENT_ACTIONS, *_VERSION_0_SILENT_OBSERVATIONS), "version 0"),
}
# Properties that have no words. In version 0, the action and the observation are names.
_BESIDE = Beside(
    texts=(
        *("action", "observation", "security_risk", "message", "activated_skills", "reason"),
        "source",
    ),
    wholes=("extras", "llm_metrics", "tool_call_metadata", "tools", "critic_result"),
)


def find(value: JsonValue) -> RawTranscript | None:
    """Return the conversation in a value: a list of events, or an object with the list under
    `events`. None if the value is in another format.
    """
    name = None
    if isinstance(value, dict) and "events" in value:
        name, value = name_of(value, "id", "conversation_id"), value["events"]
    events, is_known = records_in(value), False
    for each in events:
        if not _is_event(each):
            return None
        is_known = is_known or _is_of_openhands(each)
    return RawTranscript(name, events) if is_known else None


def _is_event(value: JsonValue) -> bool:
    return isinstance(value, dict) and "id" in value and "source" in value


def _is_of_the_sdk(event: JsonDict) -> bool:
    return "kind" in event


def _is_of_openhands(event: JsonDict) -> bool:
    """Return whether only OpenHands writes events like this. A `kind` alone is not enough, because
    other programs write it, too.
    """
    kind = event.get("kind")
    is_of_version_0 = "action" in event and "args" in event
    return is_of_version_0 or (isinstance(kind, str) and kind in _SDK_KINDS)


def content_of(event: JsonValue) -> JsonValue:
    """Return the properties of an event that may have words of people, models or tools. Return
    `NOTHING` for events of the types in `SILENT`.

    Words in these properties that are in no message are reported as lost.
    """
    return NOTHING if type_of(event) in SILENT else _BESIDE.without(event)


def type_of(event: JsonValue) -> str:
    """Return the `kind` of an event. In version 0 of OpenHands, return its `action` or
    `observation`. Return "none" if the event has none of these properties.
    """
    named = ("kind", "action", "observation")
    return next((each for name in named if isinstance(each := event.get(name), str)), "none")


class _Reader(SessionReader):
    """Reads each event by the reader for its version, `_SdkReader` or `_Version0Reader`.

    Both readers add messages by the methods of this class. It remembers the messages and tool calls
    of earlier events.
    """

    format = NAME

    def __init__(self) -> None:
        super().__init__()
        self.trigger: str | None = None  # why the next condensation was requested
        self._messages: dict[str, int] = {}  # the indices of messages by the ids of their events
        self._calls: dict[str, str | None] = {}  # the ids of calls by the ids of their events

    def read(self, record: JsonDict) -> None:
        reader = _SdkReader(self) if _is_of_the_sdk(record) else _Version0Reader(self)
        message = reader.read(record)
        if message is not None:
            self._messages[str(record.get("id"))] = message

    def event_ids(self) -> Iterable[str]:
        """Return the ids of the events from which messages were read."""
        return self._messages.keys()

    def call_of(self, event_id: JsonValue) -> str | None:
        """Return the id of the tool call in an event; None if the event has no tool call."""
        return self._calls.get(str(event_id))

    def call(
        self,
        event: JsonDict,
        request: ToolExecutionRequest,
        thought: list[str],
        answer: str | None,
    ) -> int:
        """Add a tool call to the model's answer with the id `answer`. Return the position of the
        answer's message.
        """
        self._calls[str(event.get("id"))] = request.id
        thinking, text = text_in(event, "reasoning_content"), "\n".join(thought) or None
        return self.answer(AiMessage(text, (request,), thinking, self.own(_about(event))), answer)

    def forget(self, event_ids: Iterable[JsonValue], condensation: JsonDict) -> None:
        """Replace the messages of events by the summary of a condensation. An earlier summary
        leaves the window, too.
        """
        left = {self._messages[id] for id in map(str, event_ids) if id in self._messages}
        summary, trigger = text_in(condensation, "summary"), self.trigger
        self.trigger = None
        self.miss("events that a condensation removed without a summary", summary is None)
        self.compact(
            UserMessage(summary or "[no summary]"),
            kept=[place for place in self.built.window if place not in left | self.summaries()],
            ahead=whole(condensation.get("summary_offset")) or 0,
            trigger=trigger,
        )


class _SdkReader:
    """Reads the events of the SDK, and adds their messages to a `session`."""

    def __init__(self, session: _Reader) -> None:
        self._session = session

    def read(self, event: JsonDict) -> int | None:
        """Read an event. Return the position of its message, or None if it has no message."""
        match event["kind"]:
            case "SystemPromptEvent":
                return self._system_prompt(event)
            case "MessageEvent":
                return self._message(event)
            case "ActionEvent":
                return self._action(event)
            case "ObservationEvent" | "UserRejectObservation" | "AgentErrorEvent":
                return self._observation(event)
            case "CondensationRequest":
                self._session.trigger = text_in(event, "reason")
            case "Condensation":
                self._session.forget(list_in(event, "forgotten_event_ids"), event)
            case "CondensationSummaryEvent":
                pass  # the condensation has the summary too
            case kind:
                self._session.miss(f"events of kind {kind!r}")
        return None

    def _system_prompt(self, event: JsonDict) -> int | None:
        session = self._session
        texts = part_texts([event.get("system_prompt"), event.get("dynamic_context")])
        session.lack("definitions of tools", len(list_in(event, "tools")))
        return session.add(SystemMessage("\n".join(texts))) if "".join(texts).strip() else None

    def _message(self, event: JsonDict) -> int | None:
        session, message = self._session, dict_in(event, "llm_message")
        own = session.own(_about(event))
        contents = _contents(message.get("content")) + _contents(event.get("extended_content"))
        if message.get("role") == "assistant":
            text = "\n".join(each.text for each in contents if isinstance(each, TextContent))
            return session.add(AiMessage(text, (), text_in(message, "reasoning_content"), own))
        if not contents:
            session.lack("messages without content")
            return None
        is_user = event.get("source") == "user"
        return session.add(UserMessage(contents, None, own), by_program=not is_user)

    def _action(self, event: JsonDict) -> int:
        call = dict_in(event, "tool_call")
        call = dict_in(call, "function") or call
        name = text_in(call, "name") or text_in(event, "tool_name")
        arguments = call.get("arguments", event.get("action"))
        request = self._session.calls.request(text_in(event, "tool_call_id"), name, arguments)
        thought = part_texts(event.get("thought"))
        return self._session.call(event, request, thought, text_in(event, "llm_response_id"))

    def _observation(self, event: JsonDict) -> int:
        """Read an observation: a tool result, a rejection by the user, or an error of the agent."""
        refused = event.get("rejection_reason", event.get("error"))
        observation = event.get("observation", refused)
        has_failed = event["kind"] != "ObservationEvent" or _is_error(observation)
        call = text_in(event, "tool_call_id")
        return self._session.result(call, _observed(observation), has_failed or None, _about(event))


class _Version0Reader:
    """Reads the events of version 0, and adds their messages to a `session`."""

    def __init__(self, session: _Reader) -> None:
        self._session = session

    def read(self, event: JsonDict) -> int | None:
        """Read an event. Return the position of its message, or None if it has no message."""
        if event.get("observation") is not None:
            return self._observation(event)
        action, args = event.get("action"), dict_in(event, "args")
        if action == "condensation":
            self._session.forget(self._forgotten(args), args)
            return None
        if action == "system" and isinstance(args.get("content"), str):
            return self._system_prompt(args["content"])
        if action == "message" and isinstance(args.get("content"), str):
            return self._message(event, args["content"])
        is_silent = action is None or action in _VERSION_0_SILENT_ACTIONS
        if event.get("source") == "agent" and not is_silent:
            return self._action(event, args)
        return None

    def _system_prompt(self, text: str) -> int | None:
        return self._session.add(SystemMessage(text)) if text.strip() else None

    def _message(self, event: JsonDict, text: str) -> int:
        own = self._session.own(_about(event))
        if event.get("source") == "agent":
            return self._session.add(AiMessage(text, attributes=own))
        return self._session.add(UserMessage(text, None, own))

    def _action(self, event: JsonDict, args: JsonDict) -> int:
        metadata = dict_in(event, "tool_call_metadata")
        name = text_in(metadata, "function_name") or str(event["action"])
        arguments = {name: value for name, value in args.items() if name != "thought"}
        request = self._session.calls.request(text_in(metadata, "tool_call_id"), name, arguments)
        thought = [text] if isinstance(text := args.get("thought"), str) and text else []
        answer = name_of(dict_in(metadata, "model_response"), "id")
        return self._session.call(event, request, thought, answer)

    def _observation(self, event: JsonDict) -> int | None:
        """Read an observation: the result of the tool call that caused it, or what the program
        itself observed.
        """
        observation = event["observation"]
        if observation in _VERSION_0_SILENT_OBSERVATIONS:
            return None
        content, about = _observed(event.get("content")), _about(event)
        if call := self._session.call_of(event.get("cause")):
            return self._session.result(call, content, observation == "error" or None, about)
        observed = UserMessage(content or f"[{observation}]", None, self._session.own(about))
        return self._session.add(observed, by_program=True)

    def _forgotten(self, args: JsonDict) -> JsonList:
        """Return the ids of the events that a condensation removes. They are listed, or given by
        the first and the last id.
        """
        first = whole(args.get("forgotten_events_start_id"))
        last = whole(args.get("forgotten_events_end_id"))
        is_listed = isinstance(args.get("forgotten_event_ids"), list)
        if is_listed or first is None or last is None:
            return list_in(args, "forgotten_event_ids")
        known = self._session.event_ids()
        numbers = (id for id in known if id.isdecimal() and len(id) < 20)  # a limit of int()
        return [id for id in numbers if first <= int(id) <= last]


def _about(event: JsonDict) -> JsonDict:
    """Return the details of an event besides its text."""
    of_the_sdk = ("security_risk",) if _is_of_the_sdk(event) else ()
    return {name: event.get(name) for name in ("id", "timestamp", *of_the_sdk)}


def _is_error(observation: JsonValue) -> bool:
    return isinstance(observation, dict) and observation.get("is_error") is True


def _observed(observation: JsonValue) -> JsonValue:
    """Return the result of a tool: the content or output of an observation. If there is neither,
    return the whole observation as JSON.
    """
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
