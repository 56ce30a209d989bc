"""Session files of agents: the history, and the part of it that the agent still saw."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    InvalidValue,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
)
from chatmemory.exceptions import UnreadableTranscript
from chatmemory.formats import parse_messages, read_transcripts
from chatmemory.formats.format import Transcript
from chatmemory.formats.packed import Packed
from chatmemory.messages.message import text_of
from tests.conversations import window_of

from ..properties import examples


def read(records, format="auto") -> Transcript:
    reading = read_transcripts("\n".join(map(json.dumps, records)), format)
    assert reading.refused == ()
    transcript, *branches = reading.transcripts
    assert all(each.shared for each in branches)
    assert transcript.session is not None
    assert len(transcript.turns) == len(transcript.messages)
    return transcript


def texts_of_messages(transcript):
    return [text_of(message) for message in transcript.messages]


def texts_in_window(transcript, at=None):
    """The texts that the agent saw, at the end or after some messages."""
    session = transcript.session
    places = window_of(session, len(session.messages) if at is None else at)
    return [text_of(session.messages[place]) for place in places]


def what_is_missing(transcript):
    return [loss.what for loss in transcript.losses]


# Claude Code


class Claude:
    """Writes records. Each is the child of the one before unless another parent is given."""

    def __init__(self) -> None:
        self.records: list[dict] = []

    def write(self, type, uuid, parent="", **more):
        last = self.records[-1]["uuid"] if self.records else None
        record = {"type": type, "uuid": uuid, "parentUuid": last if parent == "" else parent}
        self.records.append({**record, "sessionId": "s", "isSidechain": False, **more})

    def user(self, uuid, content, parent="", **more):
        message = {"role": "user", "content": content}
        self.write("user", uuid, parent, message=message, **more)

    def result(self, uuid, id, content, parent="", **more):
        block = {"type": "tool_result", "tool_use_id": id, "content": content, **more}
        self.user(uuid, [block], parent)

    def ai(self, uuid, id, block, parent="", tokens=None, **more):
        block = {"type": "text", "text": block} if isinstance(block, str) else block
        message = {"id": id, "role": "assistant", "model": "m", "content": [block], **more}
        message["usage"] = {"input_tokens": 1, "cache_read_input_tokens": (tokens or 1) - 1}
        self.write("assistant", uuid, parent, message=message)

    def call(self, uuid, id, call, parent="", **arguments):
        block = {"type": "tool_use", "id": call, "name": "Read", "input": arguments}
        self.ai(uuid, id, block, parent)

    def compact(self, uuid, summary, logical=None, **about):
        more = {"subtype": "compact_boundary", "logicalParentUuid": logical}
        self.write("system", uuid, None, **more, compactMetadata=about)
        self.user(f"{uuid}-summary", summary, isCompactSummary=True)


@pytest.fixture
def claude() -> Claude:
    return Claude()


def test_an_answer_of_several_records_is_one_message(claude):
    claude.user("1", "Read both.")
    claude.ai("2", "m1", {"type": "thinking", "thinking": "Hm.", "signature": "x"}, tokens=900)
    claude.ai("3", "m1", "I read.")
    claude.call("4", "m1", "a", path="é")
    claude.result("5", "a", "one", parent="4")
    claude.call("6", "m1", "b", parent="4", path="f")
    claude.result("7", "b", [{"type": "text", "text": "two"}], is_error=True)
    transcript = read(claude.records)
    calls = [
        ToolExecutionRequest("a", "Read", '{"path": "é"}'),
        ToolExecutionRequest("b", "Read", '{"path": "f"}'),
    ]
    user, answer, one, two = transcript.messages
    assert (answer.text, answer.thinking) == ("I read.", "Hm.")
    assert list(answer.tool_execution_requests) == calls
    assert (one.id, one.tool_name, one.is_error) == ("a", "Read", None)
    assert (two.id, two.tool_name, two.is_error) == ("b", "Read", True)
    assert answer.attributes["claude_code"]["id"] == "m1"
    assert answer.attributes["claude_code"]["signature"] == "x"
    assert user.attributes == {"claude_code": {"uuid": "1"}}
    assert transcript.turns == (0, 1, 4, 6)


def test_messages_before_the_user_went_back_are_a_branch(claude):
    claude.user("1", "Start")
    claude.user("2", "first attempt")
    claude.ai("3", "m1", "first answer")
    claude.user("4", "second attempt", parent="1")
    reading = read_transcripts(json.dumps(claude.records))
    main, branch = reading.transcripts
    assert (main.name, texts_of_messages(main)) == ("s", ["Start", "second attempt"])
    assert (branch.name, branch.shared) == ("s-branch-1", 1)
    assert texts_of_messages(branch) == ["Start", "first attempt", "first answer"]
    assert not any("reached" in loss for loss in what_is_missing(main))


def test_an_answer_that_was_given_anew_is_not_reached(claude):
    claude.user("1", "Start")
    claude.ai("2", "m1", "one answer")
    claude.ai("3", "m2", "another answer", parent="1")
    transcript = read(claude.records)
    assert texts_of_messages(transcript) == ["Start", "another answer"]
    (loss,) = [each for each in transcript.losses if "not on the path" in each.what]
    assert (loss.what, loss.place) == (
        "messages that are not on the path to the last message (1)",
        "line 2",
    )


def test_a_text_that_waited_for_an_answer_given_anew_is_not_reached_either(claude):
    claude.user("1", "Start")
    claude.ai("2", "m1", "one answer")
    claude.write("attachment", "3", attachment={"type": "queued_command", "prompt": "Be brief"})
    claude.ai("4", "m2", "another answer", parent="1")
    losses = [each.what for each in read(claude.records).losses]
    assert "messages that are not on the path to the last message (2)" in losses
    assert "words that are not read" not in losses


def test_subagents_and_progress_are_no_messages(claude):
    claude.user("1", "Start")
    claude.write("progress", "2", data={"type": "agent_progress"})
    claude.user("3", "to a subagent", isSidechain=True)
    claude.ai("4", "m1", "done", parent="2")
    claude.ai("5", "m2", "API error", model="<synthetic>")
    transcript = read(claude.records)
    assert texts_of_messages(transcript) == ["Start", "done"]
    losses = what_is_missing(transcript)
    assert "records of subagents, of which only the results came back (1)" in losses
    assert "answers that the program gave in place of the model (1)" in losses
    assert any("system prompts" in loss for loss in losses)


def test_the_file_of_a_subagent_is_read(claude):
    claude.user("1", "Find it.", isSidechain=True)
    assert texts_of_messages(read(claude.records)) == ["Find it."]


@pytest.mark.parametrize("logical", ["2", "never written", None])
def test_a_compaction_replaces_the_window(claude, logical):
    claude.user("1", "Start")
    claude.ai("2", "m1", "Working", tokens=80)
    claude.compact("3", "Summary: a start", logical or "2", trigger="auto", preTokens=90)
    claude.ai("4", "m2", "Going on", tokens=30)
    transcript = read(claude.records)
    (compaction,) = transcript.session.compactions
    assert texts_of_messages(transcript) == ["Start", "Working", "Going on"]
    assert (compaction.covered, compaction.window, compaction.kept) == ((0, 1), (2,), ())
    assert (compaction.trigger, compaction.tokens_before, compaction.tokens_after) == (
        *("auto", 90),
        30,
    )
    assert texts_in_window(transcript, at=2) == ["Start", "Working"]
    assert texts_in_window(transcript) == ["Summary: a start", "Going on"]
    assert any("context that a compaction restored" in loss for loss in what_is_missing(transcript))


def test_no_word_of_a_long_session_is_reported_as_lost_behind_a_compaction(claude):
    """Each answer has three records, so a message is far from the record of the same number. All
    texts together are too long to be looked through for each of them.
    """
    claude.user("first", "Start")
    claude.compact("compacted", "Summary: a start", "first", trigger="auto", preTokens=90)
    for n in range(200):
        claude.user(f"u{n}", f"Question {n} " + "and so on " * 500)
        for part in ("thought", "said", "added"):
            claude.ai(f"{part}{n}", f"m{n}", f"{part} {n} " + "as it were " * 500)
    transcript = read(claude.records)
    assert len(transcript.messages) == 401
    assert [what for what in what_is_missing(transcript) if what.startswith("words")] == []


def test_a_second_summary_replaces_the_first(claude):
    claude.user("1", "Start")
    claude.compact("2", "Summary one", "1")
    claude.user("3", "More")
    claude.compact("4", "Summary two", "3")
    transcript = read(claude.records)
    assert [each.covered for each in transcript.session.compactions] == [(0,), (1, 2)]
    assert texts_in_window(transcript) == ["Summary two"]


def test_a_missing_parent_is_the_record_before(claude):
    claude.user("1", "Start")
    claude.user("2", "after a resume", parent="lost")
    assert texts_of_messages(read(claude.records)) == ["Start", "after a resume"]


KEPT = {"preservedMessages": {"anchorUuid": "9-summary", "uuids": ["4", "5", "6"]}}


def test_kept_records_stay_although_they_are_written_behind_the_boundary(claude):
    claude.user("1", "Start")
    claude.user("2", "first attempt")
    claude.user("3", "second attempt", parent="1")
    claude.ai("4", "m1", "second answer")
    claude.user("5", "Keep going")
    claude.compact("9", "Summary", "6", **KEPT)
    claude.ai("6", "m2", "Kept going", parent="9-summary")
    claude.user("7", "After", parent="6")
    transcript = read(claude.records)
    kept = ["second answer", "Keep going", "Kept going"]
    assert texts_of_messages(transcript) == ["Start", "second attempt", *kept, "After"]
    assert texts_in_window(transcript) == ["Summary", *kept, "After"]
    assert transcript.session.compactions[0].covered == (0, 1)


def test_kept_records_can_be_told_by_the_first_and_the_last(claude):
    for n in range(1, 6):
        claude.user(str(n), f"said {n}")
    claude.compact("9", "Summary", "5", preservedSegment={"headUuid": "3", "tailUuid": "5"})
    assert texts_in_window(read(claude.records)) == ["Summary", "said 3", "said 4", "said 5"]


def test_microcompaction_clears_results(claude):
    claude.call("1", "m1", "a", path="f")
    claude.result("2", "a", "long")
    about = {"compactedToolIds": ["a", "gone"], "trigger": "auto"}
    claude.write("system", "3", subtype="microcompact_boundary", microcompactMetadata=about)
    claude.user("4", "Go on")
    session = read(claude.records).session
    assert session.cleared == {1: 2}
    assert session.compactions == ()


def test_text_that_a_program_wrote_for_the_user_is_marked(claude):
    claude.user("1", "Hello")
    claude.user("2", "Caveat: …", isMeta=True)
    claude.user("3", "<system-reminder>Lint failed.</system-reminder>")
    assert read(claude.records).session.by_programs == {1, 2}


def test_contents_that_are_no_text_are_kept(claude):
    source = {"type": "base64", "media_type": "image/png", "data": "QQ=="}
    blocks = [
        {"type": "image", "source": source},
        {"type": "document", "source": {"data": "QQ=="}},
        {"type": "tool_reference"},
    ]
    claude.user("1", blocks)
    claude.ai("2", "m1", {"type": "server_tool_use"})
    transcript = read(claude.records)
    assert [each.type for each in transcript.messages[0].contents] == ["IMAGE", "PDF", "TEXT"]


def test_titles_of_sessions_are_no_compactions(claude):
    claude.user("1", "Hello")
    transcript = read([{"type": "summary", "summary": "A title", "leafUuid": "1"}, *claude.records])
    assert (transcript.name, texts_of_messages(transcript)) == ("s", ["Hello"])
    assert transcript.session.compactions == ()


def test_an_unreadable_record_is_left_out_and_named(claude):
    claude.user("1", "Hello")
    claude.user("2", 5)
    claude.ai("3", "m1", "Hi")
    lines = "\n".join(map(json.dumps, claude.records))
    reading = read_transcripts(lines)
    assert [texts_of_messages(each) for each in reading.transcripts] == [["Hello", "Hi"]]
    assert [each.where for each in reading.refused] == ["line 2"]
    assert "a list of blocks" in reading.refused[0].why


# Codex


def item(type, **payload):
    return {"type": "response_item", "payload": {"type": type, **payload}}


def message_item(role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def compacted(**payload):
    return {"type": "compacted", "payload": payload}


META = {"type": "session_meta", "payload": {"id": "r", "base_instructions": {"text": "Be brief."}}}
CONTEXT = message_item("user", "<environment_context>here</environment_context>")
USED = {"type": "token_count", "info": {"last_token_usage": {"input_tokens": 70}}}


def test_the_items_of_an_answer_are_one_message():
    call = {"arguments": '{"cmd": "ls"}', "name": "shell"}
    transcript = read(
        [
            META,
            CONTEXT,
            message_item("user", "List."),
            {"type": "event_msg", "payload": {"type": "user_message", "message": "List."}},
            item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}]),
            message_item("assistant", "I list."),
            item("function_call", call_id="1", **call),
            item("custom_tool_call", call_id="2", name="patch", input="*** Begin"),
            {"type": "event_msg", "payload": USED},
            item("function_call_output", call_id="1", output={"content": "a b"}),
            item("custom_tool_call_output", call_id="2", output=[{"text": "done"}]),
            message_item("assistant", "Two files."),
            message_item("assistant", "That is all."),
        ]
    )
    calls = [
        ToolExecutionRequest("1", "shell", '{"cmd": "ls"}'),
        ToolExecutionRequest("2", "patch", "*** Begin"),
    ]
    assert transcript.name == "r"
    assert list(transcript.messages) == [
        SystemMessage("Be brief."),
        UserMessage("<environment_context>here</environment_context>"),
        UserMessage("List."),
        AiMessage("I list.", calls, "Hm."),
        ToolExecutionResultMessage("1", "shell", "a b"),
        ToolExecutionResultMessage("2", "patch", "done"),
        AiMessage("Two files."),
        AiMessage("That is all."),
    ]
    assert transcript.session.prompts == {3: 70}
    assert transcript.session.by_programs == {1}


def test_a_new_window_tells_what_was_kept():
    history = [
        each["payload"]
        for each in (CONTEXT, message_item("user", "One"), message_item("user", "S"))
    ]
    transcript = read(
        [
            *(CONTEXT, message_item("user", "One"), message_item("assistant", "Yes")),
            compacted(message="S", replacement_history=history),
            message_item("assistant", "Going on"),
        ]
    )
    assert texts_in_window(transcript) == [text_of(transcript.messages[0]), "One", "S", "Going on"]
    assert transcript.session.compactions[0].covered == (2,)


def test_an_encrypted_summary_is_said():
    history = [
        message_item("user", "One")["payload"],
        {"type": "compaction", "encrypted_content": "x"},
    ]
    transcript = read(
        [
            message_item("user", "One"),
            message_item("assistant", "Yes"),
            compacted(replacement_history=history),
        ]
    )
    (compaction,) = transcript.session.compactions
    summary = transcript.session.messages[compaction.summary]
    assert compaction.is_opaque
    assert texts_in_window(transcript) == ["One", "[encrypted summary]"]
    assert summary.attributes == {"codex": {"encrypted_content": ["x"]}}
    assert any("encrypted" in loss for loss in what_is_missing(transcript))


def test_an_older_compaction_keeps_the_latest_messages_of_the_user():
    long = "word " * 10_000
    transcript = read(
        [
            META,
            CONTEXT,
            message_item("user", f"first {long}"),
            message_item("assistant", "Yes"),
            message_item("user", f"second {long}"),
            item("function_call", call_id="1", name="shell", arguments="{}"),
            item("function_call_output", call_id="1", output="out"),
            message_item("user", "third"),
            compacted(message="Summary"),
        ]
    )
    assert [text[:8] for text in texts_in_window(transcript)] == [
        *("Be brief", "<environ", "second w", "third", "Summary"),
    ]
    losses = what_is_missing(transcript)
    assert "messages of the user that a compaction kept in part (1)" in losses


# OpenHands


def event(kind, id, **more):
    return {"kind": kind, "id": id, "source": "agent", **more}


def action(id, call, answer, thought=()):
    return event(
        *("ActionEvent", id),
        thought=[{"type": "text", "text": text} for text in thought],
        tool_name="terminal",
        tool_call_id=call,
        tool_call={"id": call, "name": "terminal", "arguments": '{"command": "ls"}'},
        llm_response_id=answer,
    )


def observed(id, call, text):
    content = [{"type": "text", "text": text}]
    return event("ObservationEvent", id, tool_call_id=call, observation={"content": content})


def message_event(id, text, role="user"):
    content = [{"type": "text", "text": text}]
    said = {"role": role, "content": content}
    return {**event("MessageEvent", id, llm_message=said), "source": role}


EVENTS = [
    event("SystemPromptEvent", "e1", system_prompt={"type": "text", "text": "Be brief."}),
    message_event("e2", "List."),
    action("e3", "1", "r1", ["I list."]),
    action("e4", "2", "r1"),
    observed("e5", "1", "a b"),
    event("AgentErrorEvent", "e6", tool_call_id="2", error="no such tool"),
    message_event("e7", "Two files.", "assistant"),
    event("CondensationRequest", "e8", reason="manual"),
    event(
        *("Condensation", "e9"),
        forgotten_event_ids=["e3", "e4", "e5", "e6"],
        summary="Listed.",
        summary_offset=2,
    ),
    message_event("e10", "And now?"),
    event("PauseEvent", "e11"),
]


@pytest.mark.parametrize("file", [EVENTS, [{"id": "c", "events": EVENTS}]])
def test_events_of_the_sdk(file):
    transcript = read(file)
    calls = [ToolExecutionRequest(id, "terminal", '{"command": "ls"}') for id in ("1", "2")]
    answer, one, two = transcript.messages[2:5]
    assert (answer.text, list(answer.tool_execution_requests)) == ("I list.", calls)
    assert (one.id, text_of(one), one.is_error) == ("1", "a b", None)
    assert (two.id, text_of(two), two.is_error) == ("2", "no such tool", True)
    assert texts_in_window(transcript) == [
        "Be brief.",
        "List.",
        "Listed.",
        "Two files.",
        "And now?",
    ]
    (compaction,) = transcript.session.compactions
    assert (compaction.covered, compaction.trigger) == ((2, 3, 4), "manual")
    assert what_is_missing(transcript) == ["events of kind 'PauseEvent' (1)"]


def test_a_later_condensation_replaces_the_summary_before():
    condensed = {"forgotten_event_ids": ["e7"], "summary": "All was said.", "summary_offset": 1}
    transcript = read([*EVENTS, event("Condensation", "e12", **condensed)])
    assert texts_in_window(transcript) == ["Be brief.", "All was said.", "List.", "And now?"]


def old(id, source, **more):
    return {"id": id, "source": source, **more}


@pytest.mark.parametrize(
    "forgotten",
    [
        {"forgotten_event_ids": [2, 3]},
        {"forgotten_events_start_id": 2, "forgotten_events_end_id": 3},
    ],
)
def test_events_of_version_0(forgotten):
    made = {"function_name": "execute_bash", "tool_call_id": "1", "model_response": {"id": "r"}}
    condensed = {**forgotten, "summary": "Ran ls.", "summary_offset": 2}
    transcript = read(
        [
            old(0, "agent", action="system", args={"content": "Be brief."}),
            old(1, "user", action="message", args={"content": "List."}),
            old(
                *(2, "agent"),
                action="run",
                args={"command": "ls", "thought": "I list."},
                tool_call_metadata=made,
            ),
            old(3, "agent", observation="run", cause=2, content="a b"),
            old(4, "environment", observation="agent_state_changed", content=""),
            old(5, "agent", action="condensation", args=condensed),
            old(6, "agent", action="message", args={"content": "Two files."}),
        ]
    )
    call = ToolExecutionRequest("1", "execute_bash", '{"command": "ls"}')
    answer, result = transcript.messages[2:4]
    assert (answer.text, answer.tool_execution_requests) == ("I list.", (call,))
    assert (result.id, result.tool_name, text_of(result)) == ("1", "execute_bash", "a b")
    assert texts_in_window(transcript) == ["Be brief.", "List.", "Ran ls.", "Two files."]


# All of them


@pytest.mark.parametrize(
    "records",
    [
        [{"type": "user", "message": "hi"}, {"type": "assistant", "message": "ho"}],
        [{"uuid": "1", "parentUuid": None, "text": "hi"}],
        [{"type": "event_msg", "text": "hi"}],
        [{"type": "compacted", "payload": "x"}, {"type": "log", "payload": {}}],
        [{"id": "1", "source": "web", "kind": "view"}, {"id": "2", "source": "web"}],
        [{"id": 1, "source": "web", "action": "click"}],
        [{"events": [{"name": "x"}]}],
    ],
)
def test_other_json_lines_are_not_taken(records):
    begin = "JSON Lines, which begin with an object with" if len(records) > 1 else "an object with"
    with pytest.raises(UnreadableTranscript, match=f"no conversation found: the file is {begin}"):
        read_transcripts("\n".join(map(json.dumps, records)))


def mangled(records):
    """Records in which a few values are others: of a wrong type, missing or said twice."""
    junk = st.sampled_from([None, 5, "x", [], {}, [5], {"a": 1}, [[]], {"type": "text"}])

    def change(place, records):
        key, name, value = place
        record = dict(records[key % len(records)])
        names = sorted(record)
        record[names[name % len(names)]] = value
        return [*records[: key % len(records)], record, *records[key % len(records) + 1 :]]

    places = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), junk), max_size=3)
    return places.map(
        lambda found: [each for place in found for each in change(place, records)] or records
    )


def claude_records():
    claude = Claude()
    claude.user("1", [{"type": "text", "text": "Start"}])
    claude.call("2", "m1", "a", path="f")
    claude.result("3", "a", "one")
    claude.compact("9", "Summary", "3", preservedMessages={"uuids": ["3"]})
    claude.ai("4", "m2", "Kept going", parent="9-summary")
    return claude.records


CODEX = [META, CONTEXT, message_item("assistant", "Yes"), compacted(message="S"), item("x_call")]


@pytest.mark.parametrize(
    ("format", "records"),
    [("claude_code", claude_records()), ("codex", CODEX), ("openhands", EVENTS)],
)
def test_whatever_a_file_holds_is_read_or_refused(format, records):
    flat = [value for each in records for value in (each, *filter(_is_object, each.values()))]

    @examples(100)
    @given(mangled(records) | mangled(flat))
    def anything(given):
        with contextlib.suppress(InvalidValue):
            parse_messages(given, format)

    anything()


def _is_object(value):
    return isinstance(value, dict)


@pytest.mark.parametrize(
    ("sessions", "expected"),
    [
        ("claude_sessions", (3, 4, 424)),
        pytest.param("all_claude_sessions", (13, 15, 1_560), marks=pytest.mark.long),
    ],
)
def test_the_real_sessions_are_read(request, sessions, expected):
    compactions, results, answered = 0, 0, 0
    files = request.getfixturevalue(sessions)
    for path in files:
        reading = read_transcripts(path.read_bytes())
        (transcript,) = reading.transcripts
        assert (reading.format, reading.refused) == ("claude_code", ())
        compactions += len(transcript.session.compactions)
        assert [loss for loss in transcript.losses if loss.what.startswith("words")] == []
        assert all(not each.kept for each in transcript.session.compactions)
        opened: set[str] = set()
        for message in transcript.messages:
            if isinstance(message, AiMessage):
                opened |= {call.id for call in message.tool_execution_requests}
            elif isinstance(message, ToolExecutionResultMessage):
                results += 1
                answered += message.id in opened
    assert (len(files), compactions, results) == expected
    assert answered == results


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "ActionEvent", "tool_call_id": "1", "tool_call": {"function": "find"}},
        {"kind": "MessageEvent", "llm_message": {"content": [{"text": "x", "image_urls": 5}]}},
        {"action": "run", "tool_call_metadata": {"model_response": {"id": ["r"]}}},
        {
            "action": "condensation",
            "args": {f"forgotten_events_{n}_id": 1 for n in ("start", "end")},
        },
    ],
)
def test_values_of_wrong_types_in_an_event_of_openhands_are_passed_over(event):
    hello = {"action": "message", "args": {"content": "Hello"}}
    events = [hello | {"id": "9" * 5000, "source": "user"}, event | {"id": "2", "source": "agent"}]
    assert texts_of_messages(parse_messages(events, "openhands"))[0] == "Hello"


def test_packed_records_are_a_list_of_them():
    given = [{"n": n, "text": "\ud800 \N{SLOTH}" * (n % 7) * 400} for n in range(300)]
    packed = Packed(given)
    assert [*packed] == given
    assert [packed[n] for n in (299, 0, 150)] == [given[n] for n in (299, 0, 150)]
    assert packed[3:5] == tuple(given[3:5])
    packed.append("one more")
    assert (len(packed), packed[300], packed[-1]) == (301, "one more", "one more")
    for place in (-1, 7):  # behind the blocks, and in the first
        packed[place] = "another"
    assert packed == [*given[:7], "another", *given[8:], "another"]
    assert packed != given
    with pytest.raises(IndexError):
        packed[301]


def test_turns_that_codex_took_back_are_a_branch():
    def item(role, text):
        kind = "input_text" if role == "user" else "output_text"
        content = [{"type": kind, "text": text}]
        return {
            "type": "response_item",
            "payload": {"type": "message", "role": role, "content": content},
        }

    def back(turns):
        return {
            "type": "event_msg",
            "payload": {"type": "thread_rolled_back", "num_turns": turns},
        }

    records = [
        {"type": "session_meta", "payload": {"id": "s"}},
        *(item("user", "u1"), item("assistant", "a1"), item("user", "u2"), item("assistant", "a2")),
        *(item("user", "<turn_aborted>"), back(1), item("user", "u3"), item("assistant", "a3")),
        *(back(5), item("user", "u4")),
    ]
    reading = read_transcripts("\n".join(map(json.dumps, records)))
    main, first, second = reading.transcripts
    assert texts_of_messages(main) == texts_in_window(main) == ["u4"]
    assert texts_of_messages(first) == ["u1", "a1", "u2", "a2", "<turn_aborted>"]
    assert texts_of_messages(second) == ["u1", "a1", "u3", "a3"]
    assert first.is_branch
    assert second.is_branch
    assert not any("not read" in loss.what for loss in main.losses)


def test_an_answer_that_was_written_again_has_each_block_once(claude):
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
    text = {"type": "text", "text": "Measuring"}
    claude.user("1", "measure")
    claude.ai("2", "m1", text)
    claude.ai("3", "m1", call)
    for uuid, *blocks in (
        ("4", {**text, "text": "Measuring now."}, {**call, "input": {"path": "shelf"}}),
        ("5", {**text, "text": "Measuring now."}),
    ):
        message = {"id": "m1", "role": "assistant", "model": "m", "content": blocks}
        claude.write("assistant", uuid, message=message)
    claude.result("6", "t1", "ninety wide")
    transcript = read(claude.records)
    answer = transcript.messages[1]
    assert answer.text == "Measuring now."
    assert [each.arguments for each in answer.tool_execution_requests] == ['{"path": "shelf"}']
    assert len(transcript.messages) == 3
