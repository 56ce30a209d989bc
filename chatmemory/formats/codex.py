"""Codex CLI: rollout files, one JSON record a line. This format is only read.

- An *item* is an input or output of the model: a message, reasoning, a tool call or a tool result.
- A `response_item` record has an item under `payload`. In older files, the record itself is the
  item.
- An `event_msg` record may have a copy of an item, for the screen. The copy is read only if the
  item is in no other record. Other events have token counts, or say that turns were taken back.
- A `compacted` record has the new window, or in older files only the summary.

Source of the shapes: openai/codex, codex-rs/core/src/compact.rs and protocol/src/models.rs; for the
first version, codex-cli/src/utils/storage/save-rollout.ts.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b

from chatmemory.exceptions import InvalidMessage
from chatmemory.formats.account import NOTHING, Account
from chatmemory.formats.format import NOT_KNOWN, Format, Kinds, RawTranscript, Transcript, kind_of
from chatmemory.formats.json_properties import (
    dict_in,
    dicts_in,
    first_in,
    list_in,
    name_of,
    object_in,
    text_in,
    type_in,
    unknown,
)
from chatmemory.formats.readers_and_writers import stand_in
from chatmemory.formats.records import records_in
from chatmemory.formats.sessions import SessionReader, branch_of, part_texts, whole
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import Content, Image, ImageContent, TextContent
from chatmemory.messages.json_values import JsonDict, JsonList, JsonMap, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    MessageType,
    SystemMessage,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
    with_attributes,
)

NAME = "codex"
# The beginnings of users' items that the program wrote itself.
BY_PROGRAMS = (
    *("# AGENTS.md instructions", "<environment_context>", "<user_instructions>"),
    *("<turn_aborted>", "<user_shell_command>", "<INSTRUCTIONS>"),
)
# The bytes of users' messages that older compactions keep: four bytes count as a token.
KEPT_OF_USERS = 20_000 * 4
BRANCHES = 20  # the most ways with turns that were taken back


_ITEMS = {"message", "reasoning"}
_ABOUT_TURNS = (
    *("task_started", "turn_started", "turn_aborted", "context_compacted", "thread_rolled_back"),
    *("sub_agent_activity", "collab_agent_spawn_end", "patch_apply_end", "web_search_end"),
)


def find(value: JsonValue) -> RawTranscript | None:
    """Return the records of a file, or None if the file is in another format.

    The file has a list of records. The first version of Codex wrote an object with the properties
    `session` and `items` instead. In that case, the records are the session and the items.
    """
    if isinstance(value, dict) and dict_in(value, "session") and list_in(value, "items"):
        value = [value["session"], *value["items"]]
    records = records_in(value)
    name, is_session = None, False
    for each in records:
        if not _is_record(each):
            return None
        is_meta = each.get("type") == "session_meta" and "payload" in each
        if is_meta or _is_bare_meta(each):
            name = name or name_of(each["payload"] if is_meta else each, "id", "session_id")
            is_session = True
        is_event = "payload" in each and each["type"] in ("response_item", "event_msg")
        is_session = is_session or is_event or "record_type" in each
    return RawTranscript(name, records) if is_session else None


def _is_record(value: JsonValue) -> bool:
    if not isinstance(value, dict):
        return False
    if "payload" in value:
        return isinstance(value["payload"], dict) and isinstance(value.get("type"), str)
    return "record_type" in value or _is_bare_meta(value) or _is_item(value)


def _is_bare_meta(value: JsonMap) -> bool:
    """Return whether a record describes a session without a payload, as in older files."""
    has_instructions = {"id", "timestamp", "instructions"} <= value.keys() and "type" not in value
    return has_instructions or value.keys() == {"id", "timestamp"}


def _is_item(value: JsonMap) -> bool:
    kind = value.get("type", "message" if "role" in value else None)
    is_call = isinstance(kind, str) and kind.endswith(("_call", "_call_output"))
    return is_call or (isinstance(kind, str) and kind in _ITEMS)


def _item_in(record: JsonMap) -> JsonValue:
    """Return the item that a record has or is; None if there is no item."""
    if record.get("type") == "response_item":
        return record.get("payload")
    return record if "payload" not in record and _is_item(record) else None


# Items that exist only as events


def _items_of(event: JsonMap) -> list[JsonDict]:
    """Return the texts and calls that an event copies, in the form of items."""
    text = event.get("message")
    match event.get("type"):
        case "user_message":
            urls = [url for url in list_in(event, "images") if isinstance(url, str)]
            images = [{"type": "input_image", "image_url": url} for url in urls]
            return [_message("user", [{"type": "input_text", "text": text}, *images])]
        case "agent_message":
            return [_message("assistant", [{"type": "output_text", "text": text}])]
        case "agent_reasoning" | "agent_reasoning_raw_content":
            return [{"type": "reasoning", "summary": [{"text": event.get("text")}]}]
        case "item_completed":
            return _items_of_completed(dict_in(event, "item"))
        case "exec_command_end":
            output = event.get("aggregated_output") or event.get("stdout") or event.get("stderr")
            return _call(event, "shell", {"command": event.get("command")}, output)
        case "mcp_tool_call_end":
            about, result = dict_in(event, "invocation"), dict_in(event, "result")
            output = first_in(result, "Ok", "Err")
            return _call(event, about.get("tool"), about.get("arguments"), output)
    return []


def _items_of_completed(item: JsonMap) -> list[JsonDict]:
    parts = [{**part, "type": "text"} for part in dicts_in(item, "content") if "text" in part]
    match str(item.get("type")).lower():
        case "usermessage":
            return [_message("user", parts)]
        case "agentmessage":
            return [_message("assistant", parts)]
        case "reasoning":
            texts = [*list_in(item, "summary_text"), *list_in(item, "raw_content")]
            return [{"type": "reasoning", "summary": [{"text": text} for text in texts]}]
    return []


def _message(role: str, parts: list[JsonDict]) -> JsonDict:
    return {"type": "message", "role": role, "content": parts}


def _call(
    event: JsonMap, name: JsonValue, arguments: JsonValue, output: JsonValue
) -> list[JsonDict]:
    id = event.get("call_id")
    call = {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}
    return [call, {"type": "function_call_output", "call_id": id, "output": output}]


def _keys(item: JsonMap) -> list[tuple[str, JsonValue]]:
    """Return keys by which an item and its copy in an event can be compared: each is a kind and a
    value.
    """
    kind = item.get("type", "message")
    if kind == "message":
        text = "\n".join(part_texts([*_parts(item.get("content"))])).strip()
        return [(str(item.get("role")), text)]
    if kind == "reasoning":
        texts = [*part_texts(item.get("summary")), *part_texts(item.get("content"))]
        return [(kind, text.strip()) for text in texts]
    is_output = str(kind).endswith("_output")
    return [("output" if is_output else "call", first_in(item, "call_id", "id"))]


def _keys_in(record: JsonValue) -> list[tuple[str, JsonValue]]:
    """Return the keys of the item in a record. A malformed item has no keys."""
    item = _item_in(record) if isinstance(record, dict) else None
    with suppress(InvalidMessage):
        return _keys(item) if isinstance(item, dict) else []
    return []


def _digest(key: tuple[str, JsonValue]) -> bytes:
    """Return a digest of a key, whose text may be long."""
    return blake2b(repr(key).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _missing_items(records: Sequence[JsonValue]) -> dict[int, list[JsonDict]]:
    """Return the items that only events have, because their `response_item` is missing. Each list
    of items is under the index of its event.

    Events of several types may have copies of one item. An item may begin with text of a program,
    which the copy leaves out.
    """
    known: Counter[bytes] = Counter()
    events: defaultdict[str, list[int]] = defaultdict(list)
    for n, record in enumerate(records):
        known.update(map(_digest, _keys_in(record)))
        if isinstance(record, dict) and record.get("type") == "event_msg":
            events[str(dict_in(record, "payload").get("type"))].append(n)
    user_texts = _UserTexts(records)
    missing: dict[int, list[JsonDict]] = {}
    for places in events.values():
        left, added = Counter(known), Counter[bytes]()
        for n in places:
            for item in _items_of(records[n]["payload"]):
                keys = [key for key in _keys(item) if key[1]]
                new = [key for key in keys if left[_digest(key)] <= 0]
                left.subtract(map(_digest, keys))
                if not all(key in user_texts for key in new):
                    missing.setdefault(n, []).append(item)
                    added.update(map(_digest, new))
        known.update(added)
    return missing


def _ways(
    records: Sequence[JsonValue], missing: Mapping[int, list[JsonDict]]
) -> tuple[Sequence[int], list[Sequence[int]]]:
    """Return the records of the conversation. If turns were taken back, also return the records up
    to each such moment.
    """
    way, turns = array("L"), array("L")  # the places in the way where turns of the user begin
    others: list[Sequence[int]] = []
    for n, record in enumerate(records):
        back = _taken_back(record)
        if back and turns:
            if len(others) < BRANCHES:
                others.append(way[:])
            start = turns[max(0, len(turns) - back)]
            del way[start:]
            del turns[max(0, len(turns) - back) :]
        elif _begins_turn(record) or any(each.get("role") == "user" for each in missing.get(n, ())):
            turns.append(len(way))
        way.append(n)
    return way, others


def _taken_back(record: JsonValue) -> int:
    """Return the number of user turns that an event takes back."""
    payload = dict_in(record, "payload")
    is_back = payload.get("type") == "thread_rolled_back"
    return max(0, whole(payload.get("num_turns")) or 0) if is_back else 0


def _begins_turn(record: JsonValue) -> bool:
    item = _item_in(record) if isinstance(record, dict) else None
    if not isinstance(item, dict) or item.get("role") != "user":
        return False
    with suppress(InvalidMessage):
        text = "\n".join(part_texts([*_parts(item.get("content"))]))
        return not text.lstrip().startswith(BY_PROGRAMS)
    return False


class _UserTexts:
    """The ends of the texts of users' items. An event may repeat only the user's own part, which is
    the end of the item's text.
    """

    def __init__(self, records: Sequence[JsonValue]) -> None:
        self._records = records

    @cached_property
    def _texts(self) -> list[str]:
        keys = (key for record in self._records for key in _keys_in(record))
        texts = dict.fromkeys(text for role, text in keys if role == "user")
        return [f"\n{text}" for text in texts]

    def __contains__(self, key: tuple[str, JsonValue]) -> bool:
        role, text = key
        return role == "user" and any(each.endswith(f"\n{text}") for each in self._texts)


class _Reader(SessionReader):
    format = NAME

    def __init__(self) -> None:
        super().__init__()
        self._answer: int | None = None  # the position of the answer that continues
        self._last_answer: int | None = None
        self._time: str | None = None  # of the record at hand
        self._missing_items: Mapping[int, list[JsonDict]] = {}

    @classmethod
    def parse(cls, turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
        account = Account.of(turns)
        missing = _missing_items(account)
        main, others = _ways(account, missing)

        def along(way: Sequence[int], after: Iterable[ChatMessage] = ()) -> JsonValue:
            reader = cls()
            reader._missing_items = missing
            return lambda account: reader.read_all(account, way, after)

        read: Transcript = along(main, after)(account)
        branches, losses, in_main = [], [*read.losses], {*main}
        for way in others:
            branch, lost = branch_of(account, along(way), {*way} - in_main, read, FORMAT)
            branches.append(branch)
            losses += lost
        return replace(read, losses=tuple(losses), branches=tuple(branches))

    def read(self, record: JsonDict) -> None:
        item = _item_in(record)
        time = record.get("timestamp")
        self._time = time if isinstance(time, str) else None
        if item is not None:
            self.item(object_in(item, "an item must be an object"))
        elif "payload" not in record:
            if "record_type" not in record:
                self.instructions(record.get("instructions"))
        else:
            self.payload(record, object_in(record["payload"], "payload must be an object"))

    def payload(self, record: JsonDict, payload: JsonDict) -> None:
        match record.get("type"):
            case "session_meta":
                self.instructions(dict_in(payload, "base_instructions").get("text"))
            case "compacted":
                self.compacted(payload)
            case "event_msg":
                for item in self._missing_items.get(self._turn, ()):
                    self.item(item)
                self.event(payload)

    def instructions(self, text: JsonValue) -> None:
        if isinstance(text, str) and text.strip():
            self.add(SystemMessage(text))
        else:
            self.lack("system prompts, which are not recorded")

    def event(self, payload: JsonDict) -> None:
        usage = dict_in(payload, "info").get("last_token_usage")
        if payload.get("type") == "token_count" and isinstance(usage, dict):
            tokens = whole(usage.get("input_tokens"))
            if tokens and self._last_answer is not None:
                self.built.count_prompt(self._last_answer, tokens)
            self._answer = None

    def item(self, item: JsonDict) -> None:
        message = self.message(item)
        if message is not None and self._time:
            own = {**getattr(message, "attributes", {}).get(NAME, {}), "timestamp": self._time}
            message = with_attributes(message, {NAME: own})
        if isinstance(message, AiMessage):
            joins = self._answer is not None and not (message.text and self.has_text())
            if joins and self._answer is not None:
                self.built.join(self._answer, message)
            else:
                self._answer = self._last_answer = self.add(message)
        elif message is not None:
            self._answer = None
            self.add(message, _is_by_program(message))

    def has_text(self) -> bool:
        answer = self.built.messages[self._answer or 0]
        return isinstance(answer, AiMessage) and bool(answer.text or answer.tool_execution_requests)

    def message(self, item: JsonDict) -> ChatMessage | None:
        """Return the message of an item, or None if it has no message."""
        kind = str(item.get("type", "message"))
        if kind == "message":
            return self.read_message(item)
        if kind == "reasoning":
            texts = [*part_texts(item.get("summary")), *part_texts(item.get("content"))]
            thoughts = "\n".join(texts)
            about = self.own({name: item.get(name) for name in ("id", "encrypted_content")})
            return AiMessage(None, (), thoughts or None, about) if thoughts or about else None
        if kind.endswith("_call_output"):
            answered = self.calls.answered(text_in(item, "call_id"))
            return ToolExecutionResultMessage(*answered, _output(item.get("output")) or "")
        if kind.endswith("_call"):
            name = text_in(item, "name") or kind.removesuffix("_call")
            id, arguments = text_in(item, "call_id", "id"), ("arguments", "input", "action")
            return AiMessage(None, (self.calls.request(id, name, first_in(item, *arguments)),))
        self.miss(f"items of type {kind!r}")
        return None

    def read_message(self, item: JsonDict) -> ChatMessage | None:
        contents = [_content(part) for part in _parts(item.get("content"))]
        text = "\n".join(each.text for each in contents if isinstance(each, TextContent))
        match item.get("role"):
            case "user":
                return UserMessage(contents) if contents else None
            case "assistant":
                return AiMessage(text, attributes=self.own({"phase": item.get("phase")}))
            case "system" | "developer":
                return SystemMessage(text) if text.strip() else None
        known = ("user", "assistant", "system", "developer")
        raise unknown("role", item.get("role"), known)

    def compacted(self, payload: JsonDict) -> None:
        self._answer = None
        history = payload.get("replacement_history")
        written = text_in(payload, "message")
        if isinstance(history, list):
            items = [object_in(each, "an item must be an object") for each in history]
            self.replaced(items, written)
        else:
            kept = self.kept_of_users()
            self.compact(UserMessage(written or "[no summary]"), kept=kept, ahead=len(kept))

    def replaced(self, history: list[JsonDict], written: str | None) -> None:
        """Read the new window after a compaction. Messages that the old window had are kept, and
        all other messages are the summary.
        """
        free = {_key(self.built.messages[place]): place for place in self.built.window}
        kept: set[int] = set()
        texts: list[str] = []
        secrets: JsonList = []
        ahead = 0
        for item in history:
            is_message = item.get("type", "message") == "message"
            message = self.read_message(item) if is_message else None
            place = free.pop(_key(message), None) if message else None
            if place is not None:
                kept.add(place)
                ahead += not texts and not secrets
            elif message:
                texts.append(text_of(message))
            elif item.get("encrypted_content"):
                secrets.append(item["encrypted_content"])
        text = "\n\n".join(texts) or written
        summary = TextContent(text) if text else stand_in("encrypted summary", None)
        self.miss("summaries that are encrypted: their content cannot be measured", bool(secrets))
        self.compact(
            UserMessage([summary], attributes=self.own({"encrypted_content": secrets})),
            kept=kept,
            ahead=ahead,
            is_opaque=bool(secrets),
        )

    def kept_of_users(self) -> set[int]:
        """Return the positions of the messages that a compaction of an older version kept.

        These are the program's messages before the first answer, the system messages, and the
        user's newest messages up to a limit. A message that Codex cut at the limit is not among
        them.
        """
        window, messages = self.built.window, self.built.messages
        is_answer = [isinstance(messages[place], AiMessage) for place in window]
        first = is_answer.index(True) if any(is_answer) else len(window)
        kept = {place for place in window[:first] if _is_by_program(messages[place])}
        kept |= {place for place in window if isinstance(messages[place], SystemMessage)}
        room = KEPT_OF_USERS
        for place in reversed(window):
            message = messages[place]
            if isinstance(message, UserMessage) and place not in kept | self.summaries():
                room -= len(text_of(message).encode())
                if room < 0:
                    self.miss("messages of the user that a compaction kept in part")
                    break
                kept.add(place)
        return kept


def _key(message: ChatMessage) -> tuple[MessageType, str]:
    return message.type, text_of(message)


def _is_by_program(message: ChatMessage) -> bool:
    is_user = isinstance(message, UserMessage)
    return is_user and text_of(message).lstrip().startswith(BY_PROGRAMS)


def _parts(content: JsonValue) -> Iterator[JsonDict]:
    if isinstance(content, str):
        yield {"type": "input_text", "text": content}
    elif isinstance(content, list):
        yield from (object_in(part, "a part must be an object") for part in content)
    elif content is not None:
        raise InvalidMessage("content must be a string or a list of parts")


def _content(part: JsonDict) -> Content:
    url = text_in(part, "image_url")
    if url:
        return ImageContent(Image(url=url))
    text = text_in(part, "text")
    return TextContent(text) if text is not None else stand_in(str(part.get("type")), None)


def _output(output: JsonValue) -> str | list[Content]:
    """Return the output of a tool call: a text, or contents. It may be wrapped under `output` or
    `content`.
    """
    if isinstance(output, dict):
        output = output.get("content", output.get("output", output))
    if isinstance(output, list):
        return [_content(part) for part in _parts(output)]
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def content_of(record: JsonValue) -> JsonValue:
    """Return the parts of a record that have words of people, models or tools. Words in these parts
    are reported as lost if no message has them.

    The parts are the record's item, the texts that an event copies, a system prompt, and properties
    that this module does not know. Returns None if this module does not know where the record has
    words. Returns `NOTHING` for an event that only copies a tool call and its result, so that the
    event is not searched.
    """
    item = _item_in(record)
    if "payload" not in record or item is not None:
        return item if item is record else [item, _BESIDE.without(record, "payload")]
    payload = dict_in(record, "payload")
    match record.get("type"), payload.get("type"):
        case "session_meta", _:
            return [_OF_A_SESSION.without(payload), _BESIDE.without(record, "payload")]
        case "event_msg", "item_completed":
            return [_BESIDE_SAID.without(payload), _BESIDE.without(record, "payload")]
        case "event_msg", _:
            items = _items_of(payload)
            if not items:
                return None
            said = [each for each in items if each["type"] in _ITEMS]
            if not said:
                return NOTHING  # calls are known by their ids
            beside = (_BESIDE_SAID.without(payload), _BESIDE.without(record, "payload"))
            return [said, *beside]
    return None


_BESIDE = Beside()
_OF_A_SESSION = Beside(
    texts=(
        *("cwd", "originator", "cli_version", "source", "thread_source", "model_provider"),
        *("agent_nickname", "agent_role", "agent_path", "memory_mode", "history_mode"),
    ),
    wholes=("git", "dynamic_tools"),
)
_BESIDE_SAID = Beside(
    texts=("message", "text", "images", "local_images"),
    wholes=("text_elements", "memory_citation", "mention_bindings"),
)


def type_of(record: JsonValue) -> str:
    """Return the type of a record, with the type of its payload if it has one."""
    inner = type_in(record.get("payload"))
    return f"{type_in(record)}/{inner}" if inner else kind_of(record)


# Records about a session, by their types, with the newest version that is known to write them.
SILENT = {
    **dict.fromkeys(("session_meta", "turn_context", "event_msg/token_count"), "0.128.0"),
    **dict.fromkeys((f"event_msg/{each}" for each in _ABOUT_TURNS), "0.128.0"),
    "state": NOT_KNOWN,  # of mid-2025
}


FORMAT = Format(
    NAME,
    find,
    _Reader.parse,
    is_record=_is_record,
    content_of=content_of,
    kinds=Kinds(type_of, SILENT),
)
