"""Claude Code: session files, one JSON record a line. This format is only read.

- Each record names its parent record, and has one content block. Records with the same `message.id`
  are one answer.
- A compaction is a record with the subtype `compact_boundary`, and the summary after it.
- If the user went back and asked something else, the tree of records has a fork. The path to the
  last record is the conversation. Each other path is a branch, up to 20 branches.

Source of the shapes: files of Claude Code 2.0.76 to 2.1.42, and test files of other programs that
read them.
"""

# Long: one format: the tree of records, and the messages of a path through it.
from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from sys import intern

from chatmemory.formats.account import Account
from chatmemory.formats.anthropic import FORMAT as _ANTHROPIC
from chatmemory.formats.anthropic import blocks_of, is_result, server_result
from chatmemory.formats.format import NOT_KNOWN, Format, Kinds, RawTranscript, Transcript
from chatmemory.formats.json_properties import (
    dict_in,
    list_in,
    name_of,
    object_in,
    part_text,
    text_in,
    type_in,
)
from chatmemory.formats.packed import Packed
from chatmemory.formats.parts import media_content, runs_of
from chatmemory.formats.readers_and_writers import answer_of, stand_in
from chatmemory.formats.records import records_in
from chatmemory.formats.sessions import SessionReader, branch_of, whole
from chatmemory.formats.words import Beside
from chatmemory.messages.contents import Content, TextContent
from chatmemory.messages.json_values import JsonDict, JsonMap, JsonValue
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
    with_attributes,
)

NAME, ANTHROPIC = "claude_code", _ANTHROPIC.name
BOUNDARY, CLEARING = "compact_boundary", "microcompact_boundary"
BOUNDARY_TYPE, CLEARING_TYPE = f"system/{BOUNDARY}", f"system/{CLEARING}"
_PROGRESS = (
    *("hook_progress", "bash_progress", "mcp_progress", "agent_progress", "query_update"),
    "search_results_received",
)
SPEAKERS = ("user", "assistant")
ANSWERS = 8  # the newest answers whose blocks may be written again
BRANCHES = 20  # the most branches that are read from one file
# The beginnings of users' records that the program wrote itself.
BY_PROGRAMS = ("<task-notification", "<local-command-stdout", "<bash-stdout", "<system-reminder")
_PROMPT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_OF_THE_TREE = (
    *("type", "subtype", "uuid", "parentUuid", "logicalParentUuid"),
    *("isSidechain", "isMeta", "isCompactSummary", "compactMetadata"),
)
_IDS = {"uuid", "parentUuid", "logicalParentUuid", "type", "subtype"}
_FLAGS = {"isSidechain", "isMeta", "isCompactSummary"}
_OF_A_CALL = ("type", "id", "tool_use_id")
# Records about a session, by their types, with the newest version that is known to write them.
SILENT = {
    **dict.fromkeys(("summary", "system/turn_duration", "system/stop_hook_summary"), "2.1.42"),
    **dict.fromkeys((f"progress/{each}" for each in _PROGRESS), "2.1.42"),
    **dict.fromkeys((BOUNDARY_TYPE, CLEARING_TYPE), "2.1.42"),
    **dict.fromkeys(("file-history-snapshot", "file-history-delta", "mode"), "2.1.173"),
    **dict.fromkeys(("permission-mode", "ai-title", "custom-title", "agent-name"), "2.1.173"),
    **dict.fromkeys(("agent-color", "pr-link", "worktree-state", "last-prompt"), "2.1.173"),
    "fork-context-ref": "2.1.133",
    **dict.fromkeys(("bridge-session", "agent-setting"), NOT_KNOWN),
}
_UNRECORDED = "system prompts and lists of tools, which are not recorded"
_OF_SUBAGENTS = "records of subagents, of which only the results came back"
_PUT_BACK = "context that a compaction restored, such as files read last, which is not recorded"


def find(value: JsonValue) -> RawTranscript | None:
    """Return the records of a file, or None if the file is in another format.

    The file is a list of records, or an object with the list under `loglines`. At least one record
    must be of Claude Code.
    """
    if isinstance(value, dict) and isinstance(value.get("loglines"), list):
        value = value["loglines"]
    records = records_in(value)
    named = next(filter(_is_record, records), None)
    if named is None or not all(isinstance(each, dict) for each in records):
        return None
    return RawTranscript(name_of(named, "sessionId"), records)


def _is_record(value: JsonValue) -> bool:
    """Return whether a value is a record of Claude Code. Records of Qwen Code are similar, but
    their messages have parts instead of content.
    """
    if not isinstance(value, dict) or not {"uuid", "sessionId", "type"} <= value.keys():
        return False
    return "content" in dict_in(value, "message") if value["type"] in SPEAKERS else True


def _may_be_record(value: JsonValue) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def find_each(value: JsonValue) -> list[RawTranscript]:
    """Return the sessions of a file, each with its records.

    A session may have several session ids. Two ids belong to one session if a record with one id
    has a parent with the other id.
    """
    found = find(value)
    records = found.turns if found else ()
    named = {id for each in records if isinstance(id := each.get("sessionId"), str)}
    if len(named) <= 1:
        return [RawTranscript(next(iter(named), None), records, places=range(len(records)))]
    ids: list[str | None] = []
    sessions: dict[str, str | None] = {}
    links: list[tuple[str | None, str]] = []  # a session, and its parent elsewhere
    for each in records:
        id = each.get("sessionId") if isinstance(each.get("sessionId"), str) else None
        ids.append(id)
        if _has_id(each):
            sessions[each["uuid"]] = id
        parents = (each.get("parentUuid"), each.get("logicalParentUuid"))
        links += [(id, name) for name in parents if isinstance(name, str)]
    heads = {id: id for id in ids if isinstance(id, str)}  # the session that each one continues
    for id, parent in links:
        other = sessions.get(parent)
        if not isinstance(id, str) or not isinstance(other, str):
            continue
        if id in heads and other in heads and heads[id] != heads[other]:
            removed = heads[id]
            heads = {k: heads[other] if head == removed else head for k, head in heads.items()}
    names: list[str | None] = [*dict.fromkeys(heads.values())] or [None]
    if len(names) == 1:
        return [RawTranscript(names[0], records, places=range(len(records)))]
    return [
        RawTranscript(name, Packed(records[n] for n in places), places=places)
        for name in names
        if (places := [n for n, id in enumerate(ids) if heads.get(id or "", names[0]) == name])
    ]


def _has_id(record: JsonValue) -> bool:
    return isinstance(record.get("uuid"), str)


def parse(turns: Sequence[JsonValue], after: Iterable[ChatMessage] = ()) -> Transcript:
    account = Account.of(turns)
    outline = [*map(_outline, account)]
    tree = _Tree(outline)
    ids = [each.get("uuid", "") for each in outline]
    kept = {ids[n]: [ids[each] for each in kept] for n, kept in tree.kept.items()}
    order, branches, unreached = tree.ways()
    sidechains = tree.sidechains
    del outline, tree, ids  # before the messages are in memory
    reader = _Reader(kept)
    reader.miss(_UNRECORDED)
    reader.miss(_OF_SUBAGENTS, len(sidechains), *sidechains)
    reader.miss(
        "messages that are not on the path to the last message",
        len(unreached),
        *unreached,
    )
    read = reader.read_all(account, order, after)
    main, losses = {*order}, [*read.losses]
    others = []
    for way in branches:
        branch, lost = branch_of(account, _along(way, kept), {*way} - main, read, FORMAT)
        others.append(branch)
        losses += lost
    return replace(read, losses=tuple(losses), branches=tuple(others))


def _outline(record: JsonValue) -> JsonDict:
    """Return the properties of a record that `_Tree` needs. Equal ids share one string, to save
    memory.
    """
    if not isinstance(record, dict):
        return {}
    found = {name: _shared(record[name]) for name in _OF_THE_TREE if record.get(name)}
    for name in _IDS & found.keys():
        if not isinstance(found[name], str):
            del found[name]
    for name in _FLAGS & found.keys():
        if found[name] is not True:
            del found[name]
    message = dict_in(record, "message")
    calls = [
        {name: _shared(block[name]) for name in _OF_A_CALL if name in block}
        for block in list_in(message, "content")
        if isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result")
    ]
    if message.get("id"):
        found["answer"] = _shared(message["id"])
    if calls:
        found["calls"] = calls
    if _is_queued(record):
        found["queued"] = True
    return found


def _is_queued(record: JsonDict) -> bool:
    """Return whether a record is a text that the user typed while the agent worked."""
    return (
        record.get("type") == "attachment"
        and dict_in(record, "attachment").get("type") == "queued_command"
    )


def _shared(value: JsonValue) -> JsonValue:
    return intern(value) if isinstance(value, str) else value


def _along(
    way: Sequence[int], kept: Mapping[str, Sequence[str]]
) -> Callable[[Account], Transcript]:
    return lambda account: _Reader(kept).read_all(account, way)


# The order of the records


class _Tree:
    """The tree of records in a file. Messages and boundaries of compactions are its steps.

    - Other records, such as progress, may be parents, too. A step with such a parent follows the
      step before it in the file.
    - If several messages have one id, only the first message counts.
    - Messages that a compaction kept may be written again after its summary. Here they come before
      the boundary.
    """

    def __init__(self, turns: Sequence[JsonValue]) -> None:
        self._turns = turns
        nodes = [n for n, each in enumerate(turns) if isinstance(each, dict) and _has_id(each)]
        main = [n for n in nodes if not turns[n].get("isSidechain")]
        is_main = any(map(self._speaks, main))  # the file of a subagent has only its own records
        self.sidechains = [n for n in nodes if turns[n].get("isSidechain")] if is_main else []
        self._by_id: dict[str, int] = {}
        self._others: list[int] = []  # records that are not steps
        self._copies: defaultdict[str, list[int]] = defaultdict(list)  # the same by their ids
        for n in main if is_main else nodes:
            if self._is_step(n):
                self._by_id.setdefault(turns[n]["uuid"], n)
            else:
                self._others.append(n)
                self._copies[turns[n]["uuid"]].append(n)
        steps = [*self._by_id.values()]
        self.kept = {n: self._kept(n) for n in steps if turns[n].get("subtype") == BOUNDARY}
        self._boundary = {n: boundary for boundary, kept in self.kept.items() for n in kept}
        self._steps = sorted(steps, key=self._place)
        self._before = dict(zip(self._steps[1:], self._steps, strict=False))
        self._summaries = {before: n for n, before in self._before.items() if before in self.kept}
        self._has_parents = any(turns[n].get("parentUuid") in self._by_id for n in steps)
        self._first_prompts: dict[int, int] = {}  # other records, by their parents
        for n in filter(self._is_prompt, self._steps):
            parent = self._parent(n, turns[n].get("parentUuid"))
            if parent is not None and not self._is_step(parent):
                self._first_prompts.setdefault(parent, n)

    def _speaks(self, n: int) -> bool:
        return self._turns[n].get("type") in SPEAKERS

    def _says(self, n: int) -> bool:
        """Return whether a record has a message, or a text that the user typed while the agent
        worked.
        """
        return self._speaks(n) or "queued" in self._turns[n]

    def _is_step(self, n: int) -> bool:
        return self._speaks(n) or self._turns[n].get("subtype") == BOUNDARY

    def _is_prompt(self, n: int) -> bool:
        """Return whether the user wrote a record. False for tool results, and for texts of a
        program.
        """
        record = self._turns[n]
        is_own = not record.get("isCompactSummary") and not record.get("isMeta")
        return record.get("type") == "user" and is_own and not any(_results(record))

    def _place(self, n: int) -> tuple[int, bool, int]:
        boundary = self._boundary.get(n, n)
        return min(n, boundary), n <= boundary and n not in self._boundary, n

    def _kept(self, boundary: int) -> list[int]:
        about = dict_in(self._turns[boundary], "compactMetadata")
        match about.get("preservedMessages"), about.get("preservedSegment"):
            case {"uuids": [*ids]}, _:
                return [self._by_id[id] for id in ids if isinstance(id, str) and id in self._by_id]
            case _, {"headUuid": str(head), "tailUuid": str(tail)}:
                return self._segment(self._by_id.get(head), self._by_id.get(tail))
        return []

    def _segment(self, head: int | None, tail: int | None) -> list[int]:
        """Return the records on the path from `head` to its descendant `tail`. Returns [] if there
        is no such path.
        """
        found: list[int] = []
        while tail is not None and tail not in found:
            found.append(tail)
            parent = self._turns[tail].get("parentUuid")
            tail = self._by_id.get(parent) if tail != head and isinstance(parent, str) else None
        return found[::-1] if found and found[-1] == head else []

    def ways(self) -> tuple[list[int], list[list[int]], list[int]]:
        """Return the records of the conversation in order, the records of each branch, and the
        messages that belong to no path.
        """
        waiting = [n for n in self._steps if self._speaks(n)]
        covered: set[int] = set()
        ways: list[list[int]] = []
        unreached: list[int] = []
        while waiting:
            way = self._way(waiting[-1])
            own = [n for n in self._steps if n in way and n not in covered]
            if not ways or (self._goes_on(own) and len(ways) <= BRANCHES):
                ways.append(self._with_others(way))
            else:
                unreached += filter(self._says, self._with_others({*own}))
            covered |= way
            waiting = [n for n in waiting if n not in covered]
        main, *branches = ways or [[]]
        branches.sort(key=lambda way: next((n for n in way if n not in main), 0))
        return main, branches, sorted(unreached)

    def _goes_on(self, own: Iterable[int]) -> bool:
        """Return whether the user or a tool went on after these steps. Without this, they are only
        other answers, and no branch.
        """
        return any(self._turns[n].get("type") == "user" or n in self.kept for n in own)

    def _way(self, last: int) -> set[int]:
        """Return the records on the path from the first record to `last`. Parallel tool calls of
        the same answers, and their results, are included.
        """
        found: set[int] = set()
        step: int | None = last
        while step is not None and step not in found:
            found.add(step)
            step = self._previous(step)
        answers = {id for n in found if (id := _answer_of(self._turns[n]))}
        found |= {n for n in self._steps if _answer_of(self._turns[n]) in answers}
        called = {id for n in found for id in _ids(self._turns[n], "tool_use", "id")}
        return found | {n for n in self._steps if not called.isdisjoint(_results(self._turns[n]))}

    def _with_others(self, way: set[int]) -> list[int]:
        """Return the steps of a path in order. Each step is followed by the other records that come
        after it in the file.
        """
        found = [n for n in self._steps if n in way]
        places = sorted(self._steps)
        for n in self._others:
            before = bisect(places, n)
            if before and places[before - 1] in way:
                found.append(n)
        return sorted(found, key=self._place)

    def _previous(self, n: int) -> int | None:
        """Return the step before a step: its parent, or if the parent is unknown, the step before
        it in the file. None at the beginning.

        Two prompts of the user with the same parent are a fork.
        """
        record = self._turns[n]
        named = record.get("parentUuid") or record.get("logicalParentUuid")
        if named is None and not self.kept.get(n) and self._is_prompt(n) and self._has_parents:
            return None
        parent = self._parent(n, named)
        if parent is None or self._place(parent) >= self._place(n):
            return self._before.get(n)
        if self._is_step(parent):
            return parent
        first = self._first_prompts.get(parent, n) if self._is_prompt(n) else n
        return self._before.get(n) if first == n else self._previous(first)

    def _parent(self, n: int, named: JsonValue) -> int | None:
        if self.kept.get(n):
            return self.kept[n][-1]
        if not isinstance(named, str):
            return None
        parent = self._by_id.get(named)
        if parent is None:
            return next((each for each in reversed(self._copies[named]) if each < n), None)
        boundary = self._boundary.get(parent)
        if boundary is not None and n > boundary and n not in self._boundary:
            return self._summaries.get(boundary)  # what follows the kept ones follows the summary
        return parent


def _answer_of(record: JsonMap) -> str | None:
    id = record.get("answer") if record.get("type") == "assistant" else None
    return id if isinstance(id, str) else None


def _results(record: JsonMap) -> Iterator[str]:
    return _ids(record, "tool_result", "tool_use_id")


def _ids(record: JsonMap, type: str, name: str) -> Iterator[str]:
    for block in record.get("calls", ()):
        if block.get("type") == type and isinstance(block.get(name), str):
            yield block[name]


# Reading each record


class _Reader(SessionReader):
    format = NAME

    def __init__(self, kept: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self._kept = kept  # the ids of the records that each boundary kept, by its own id
        self._boundary: JsonDict = {}
        self._places: dict[str, list[int]] = {id: [] for ids in kept.values() for id in ids}
        self._blocks: dict[str, list[JsonDict]] = {}  # of the newest answers by their ids
        self._results: defaultdict[str | None, list[int]] = defaultdict(list)

    def read(self, record: JsonDict) -> None:
        match record.get("type"), record.get("subtype"):
            case "user", _:
                self.user(record, _message(record))
            case "assistant", _:
                self.assistant(record, _message(record))
            case "system", subtype if subtype == BOUNDARY:
                self.miss("beginnings of compactions without a summary", bool(self._boundary))
                self._boundary = record
            case "system", subtype if subtype == CLEARING:
                self.clear(
                    object_in(
                        record.get("microcompactMetadata"), "microcompactMetadata must be an object"
                    )
                )
            case "attachment", _:
                self.attachment(record, dict_in(record, "attachment"))
            case "progress", _ if dict_in(dict_in(record, "data"), "message"):
                self.miss(_OF_SUBAGENTS)

    def attachment(self, record: JsonDict, attachment: JsonDict) -> None:
        """Read a text that the user typed while the agent worked. Other attachments are only
        counted.
        """
        if attachment.get("type") != "queued_command":
            self.miss("attachments")
            return
        contents = [_content(block) for block in blocks_of(attachment.get("prompt") or None)]
        if contents:
            about = {name: record.get(name) for name in ("uuid", "timestamp")}
            read = UserMessage(contents, attributes=self.own(about))
            by_program = attachment.get("commandMode", "prompt") != "prompt" or _is_by_program(read)
            self.placed(record, self.add(read, by_program))

    def clear(self, about: JsonDict) -> None:
        for id in list_in(about, "compactedToolIds"):
            self.built.clear(self._results[id] if isinstance(id, str) else ())

    def add(self, message: ChatMessage, by_program: bool = False) -> int:
        place = super().add(message, by_program)
        if isinstance(message, ToolExecutionResultMessage):
            self._results[message.id].append(place)
        return place

    def user(self, record: JsonDict, message: JsonDict) -> None:
        about = {name: record.get(name) for name in ("uuid", "timestamp", "isMeta")}
        contents: list[Content] = []
        for block in _blocks(message):
            if block.get("type") == "tool_result":
                is_error = block.get("is_error") is True or None
                answer = list(map(_content, _blocks(block)))
                place = self.result(text_in(block, "tool_use_id"), answer, is_error, about)
                self.placed(record, place)
            else:
                contents.append(_content(block))
        if not contents:
            return
        read = UserMessage(contents, attributes=self.own(about))
        if record.get("isCompactSummary") is True:
            self.summary(read)
        else:
            by_program = record.get("isMeta") is True or _is_by_program(read)
            self.placed(record, self.add(read, by_program))

    def placed(self, record: JsonDict, place: int) -> None:
        if record["uuid"] in self._places:
            self._places[record["uuid"]].append(place)

    def summary(self, read: UserMessage) -> None:
        boundary, self._boundary = self._boundary, {}
        about = dict_in(boundary, "compactMetadata")
        ids = self._kept.get(boundary.get("uuid", ""), ())
        self.miss(_PUT_BACK)
        self.compact(
            read,
            kept={place for id in ids for place in self._places[id]},
            trigger=text_in(about, "trigger"),
            tokens_before=whole(about.get("preTokens")),
            tokens_after=whole(about.get("postTokens")),
        )

    def assistant(self, record: JsonDict, message: JsonDict) -> None:
        if message.get("model") == "<synthetic>":
            self.miss("answers that the program gave in place of the model")
            return
        about = {name: record.get(name) for name in ("uuid", "timestamp")}
        about |= {name: message.get(name) for name in ("id", "model", "stop_reason", "usage")}
        id = text_in(message, "id")
        blocks, is_rewritten = self.new_blocks(id, _blocks(message))
        if is_rewritten and id in self._answers:
            place = self._answers[id]
            self.rewrite(place, self.part(blocks, about))
            self.placed(record, place)
            return
        for run in runs_of(blocks, is_result):
            if is_result(run[0]):
                self.placed(record, self.server_result(run[0], about, id))
                continue
            part = self.part(run, about)
            if part.text or part.thinking or part.tool_execution_requests:
                place = self.answer(part, id)
                self.placed(record, place)
                usage = dict_in(message, "usage")
                if tokens := sum(whole(usage.get(name)) or 0 for name in _PROMPT):
                    self.built.count_prompt(place, tokens)

    def new_blocks(self, id: str | None, blocks: list[JsonDict]) -> tuple[list[JsonDict], bool]:
        """Return the blocks of a record that its answer does not have yet, and False.

        A record may write known blocks again. Then return all blocks of the answer, with the new
        versions, and True.
        """
        if id is None:
            return blocks, False
        known = self._blocks.get(id, [])
        merged, is_rewritten = [*known], False
        for n, block in enumerate(blocks):
            place = _place_of(block, n, known)
            if place is None:
                merged.append(block)
            else:
                is_rewritten |= merged[place] != block
                merged[place] = block
        self._blocks.pop(id, None)
        self._blocks[id] = merged
        if len(self._blocks) > ANSWERS:
            del self._blocks[next(iter(self._blocks))]
        return (merged, True) if is_rewritten else (merged[len(known) :], False)

    def rewrite(self, place: int, answer: AiMessage) -> None:
        """Replace the answer at `place` by its newer version."""
        self.account_for_record()
        attributes = {**answer.attributes, **_attributes(self.built.messages[place])}
        self.built.replace(place, with_attributes(answer, attributes))

    def part(self, blocks: Sequence[JsonDict], about: JsonDict) -> AiMessage:
        """Return a part of an answer as a message. The message is empty if no block can be read."""
        texts, thoughts, calls = [], [], []
        types: dict[str | None, str] = {}
        for block in blocks:
            match type_in(block):
                case "text":
                    texts.append(part_text(block))
                case "thinking":
                    thoughts.append(text_in(block, "thinking"))
                    about = {**about, "signature": block.get("signature")}
                case kind if kind.endswith("tool_use"):
                    id, name = text_in(block, "id"), text_in(block, "name")
                    calls.append(self.calls.request(id, name, block.get("input")))
                    types |= {} if kind == "tool_use" else {calls[-1].id: kind}
                case kind:
                    self.miss(f"blocks of type {kind!r} in answers")
        goes_on = self.built.messages and _is_provider_result(self.built.messages[-1])
        own: JsonDict = {"types": types} if types else {}
        own |= {"joins": True} if goes_on else {}
        kept = {ANTHROPIC: own} if own else {}
        return answer_of(texts, calls, thoughts, {**self.own(about), **kept})

    def server_result(self, block: JsonDict, about: JsonDict, id: str | None) -> int:
        """Add the result of a tool that the provider ran, and return its position. What follows in
        the answer becomes another message.
        """
        self.close(id)
        kind = type_in(block)
        contents, is_error = server_result(block.get("content"))
        if kind == "mcp_tool_result":
            contents, is_error = list(map(_content, _blocks(block))), block.get("is_error") is True
        id, name = self.calls.answered(text_in(block, "tool_use_id"))
        kept = {ANTHROPIC: {"type": kind, "joins": True}}
        attributes = {**self.own({"uuid": about.get("uuid")}), **kept}
        return self.add(
            ToolExecutionResultMessage(id, name, contents, is_error or None, attributes)
        )


def _place_of(block: JsonDict, n: int, known: Sequence[JsonDict]) -> int | None:
    """Return the index of the known block that is an earlier version of this block. None if the
    block is new.

    Calls are compared by id, and texts by their beginnings, because a text may have grown.
    """
    kind = type_in(block)
    if kind.endswith("tool_use"):
        ids = (place for place, each in enumerate(known) if each.get("id") == block.get("id"))
        return next(ids, None)
    if block in known:
        return known.index(block)
    if n < len(known) and type_in(known[n]) == kind and kind in ("text", "thinking"):
        before, now = known[n].get(kind), block.get(kind)
        has_grown = isinstance(before, str) and isinstance(now, str) and now.startswith(before)
        return n if has_grown and before else None
    return None


def _attributes(message: ChatMessage) -> JsonMap:
    found: JsonMap = getattr(message, "attributes", {})
    return found


def _is_provider_result(message: ChatMessage) -> bool:
    own = getattr(message, "attributes", {}).get(ANTHROPIC, {})
    return isinstance(message, ToolExecutionResultMessage) and bool(own)


def _is_by_program(message: UserMessage) -> bool:
    return text_of(message).lstrip().startswith(BY_PROGRAMS)


def _message(record: JsonDict) -> JsonDict:
    return object_in(record.get("message"), "a record needs the field message, an object")


def _blocks(holder: JsonMap) -> list[JsonDict]:
    return blocks_of(holder.get("content") or None)


def _content(block: JsonDict) -> Content:
    source = dict_in(block, "source")
    data, url = text_in(source, "data"), text_in(source, "url")
    match block.get("type"):
        case "text":
            return TextContent(part_text(block))
        case "image" if data or url:
            return media_content("image", url, data, text_in(source, "media_type"), "low")
        case "document" if data or url:
            return media_content("file", url, data, None)
        case "tool_reference":
            return stand_in("tool", text_in(block, "tool_name"))
    return stand_in(str(block.get("type")), text_in(block, "title"))


def content_of(record: JsonValue) -> JsonValue:
    """Return the parts of a record that have words of people, models or tools. Words in these parts
    are reported as lost if no message has them.

    The parts are the content of the record's message, and a text that the user typed while the
    agent worked. Properties that this module does not know are also parts. Copies of tool results
    are left out. Returns None for a record with neither a message nor a text that the user typed.
    """
    if record.get("type") in SPEAKERS:
        return [_OF_A_MESSAGE.without(record.get("message")), _BESIDE.without(record, "message")]
    if record.get("type") == "queue-operation":
        return _BESIDE.without(record)
    attachment = dict_in(record, "attachment")
    return _BESIDE.without(attachment) if attachment.get("type") == "queued_command" else None


# Properties of records with a message, and of their messages
_BESIDE = Beside(
    texts=(
        *("cwd", "gitBranch", "userType", "slug", "entrypoint", "permissionMode", "promptSource"),
        *("level", "hookName", "agentName", "teamName", "operation", "commandMode", "summary"),
        *("error", "attributionAgent", "attributionSkill", "attributionPlugin"),
    ),
    wholes=(
        *("toolUseResult", "todos", "compactMetadata", "microcompactMetadata", "mcpMeta", "origin"),
        *("forkedFrom", "apiError", "snapshot"),
    ),
)
_OF_A_MESSAGE = Beside(wholes=("container", "context_management", "diagnostics", "stop_details"))


def type_of(record: JsonMap) -> str:
    """Return the type of a record, such as `user`; with a subtype if it has one, such as
    `progress/hook`.
    """
    type = type_in(record)
    inner = {"progress": "data", "attachment": "attachment"}.get(type)
    sub = type_in(dict_in(record, inner)) if inner else record.get("subtype")
    return f"{type}/{sub}" if isinstance(sub, str) and sub else type


FORMAT = Format(
    NAME,
    find,
    parse,
    is_record=_may_be_record,
    find_each=find_each,
    content_of=content_of,
    kinds=Kinds(type_of, SILENT),
)
