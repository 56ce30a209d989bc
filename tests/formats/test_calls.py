"""Logs of calls, traces and checkpoints: calls of one run become one conversation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import AiMessage, SystemMessage, ToolExecutionResultMessage, UserMessage
from chatmemory.formats import Reading, Transcript, parse_objects, read_transcripts
from chatmemory.messages.message import text_of


def read(*values: Any) -> Reading:
    return read_transcripts("\n".join(map(json.dumps, values)))


def lines_of(transcript: Transcript) -> list[str]:
    return [f"{message.type[:4].lower()}: {text_of(message)}" for message in transcript.messages]


def chat(*texts: str) -> list[dict[str, Any]]:
    """Messages of the user and the model in turn."""
    return [
        {"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(texts)
    ]


def answer(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"object": "chat.completion", "choices": [{"index": 0, "message": message}]}


def call(*texts: str, system: str | None = None, **more: Any) -> dict[str, Any]:
    """A call whose last text is the answer."""
    first = [{"role": "system", "content": system}] if system else []
    request = {"model": "m", "messages": [*first, *chat(*texts[:-1])]}
    return {"request": request, "response": answer(texts[-1]), **more}


# Logs


def test_calls_of_a_run_are_one_conversation_and_other_calls_another():
    reading = read(
        call("a", "b"), call("x", "y"), call("a", "b", "c", "d"), call("x", "y", "z", ".")
    )
    assert [lines_of(each) for each in reading.transcripts] == [
        ["user: a", "ai: b", "user: c", "ai: d"],
        ["user: x", "ai: y", "user: z", "ai: ."],
    ]
    assert (reading.format, reading.refused) == ("call_log", ())


def test_a_changed_system_message_splits_no_run_and_keeps_its_place():
    (transcript,) = read(
        call("a", "b", system="Be brief."), call("a", "b", "c", "d", system="Be long.")
    ).transcripts
    assert lines_of(transcript) == [
        "syst: Be brief.",
        "user: a",
        "ai: b",
        "syst: Be long.",
        "user: c",
        "ai: d",
    ]


def test_a_compaction_splits_no_run_and_what_it_left_out_stays():
    (transcript,) = read(
        call("a", "b", "c", "d"), call("sum", "of", "c", "d", "e", "f"), call("e", "f", "g", "h")
    ).transcripts
    texts = [text_of(message) for message in transcript.messages]
    assert texts == ["a", "b", "c", "d", "sum", "of", "e", "f", "g", "h"]


def test_the_thought_of_an_answer_is_kept_though_later_requests_lack_it():
    first = call("a", "b")
    first["response"]["choices"][0]["message"]["reasoning_content"] = "hm"
    (transcript,) = read(first, call("a", "b", "c", "d")).transcripts
    assert transcript.messages[1].thinking == "hm"


def test_requests_and_answers_of_other_providers():
    responses = {
        "request": {"model": "m", "instructions": "Be brief.", "input": "a"},
        "response": {
            "object": "response",
            "output": [
                {
                    "type": "message",
                    "id": "1",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "b"}],
                }
            ],
        },
    }
    block = {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}
    converse = {
        "request": {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "c"}]}]},
        "response": {"output": {"message": {"role": "assistant", "content": [block]}}},
    }
    gemini = {
        "request": {"contents": [{"role": "user", "parts": [{"text": "e"}]}]},
        "response": {"candidates": [{"content": {"role": "model", "parts": [{"text": "f"}]}}]},
    }
    reading = read(responses, converse, gemini)
    assert [lines_of(each) for each in reading.transcripts] == [
        ["syst: Be brief.", "user: a", "ai: b"],
        ["user: c", "ai: f({})"],
        ["user: e", "ai: f"],
    ]


def test_an_answer_that_is_an_error_is_reported_as_a_loss():
    failed = {"request": {"messages": chat("a")}, "response": {"error": {"message": "overloaded"}}}
    reading = read(failed, call("a", "b"))
    (transcript,) = reading.transcripts
    assert lines_of(transcript) == ["user: a", "ai: b"]
    assert "overloaded" in " ".join(loss.what for loss in transcript.losses)


def test_a_call_that_cannot_be_read_is_refused_and_the_others_are_read():
    bad = call("a", "b")
    bad["request"]["messages"][0]["role"] = "nobody"
    reading = read(bad, call("c", "d"))
    assert [lines_of(each) for each in reading.transcripts] == [["user: c", "ai: d"]]
    assert "nobody" in reading.refused[0].why


def test_input_and_output_of_a_batch_are_one_conversation_by_their_id():
    asked = {"custom_id": "r1", "method": "POST", "url": "/v1", "body": {"messages": chat("a")}}
    answered = {"custom_id": "r1", "response": {"status_code": 200, "body": answer("b")}}
    failed = {"custom_id": "r2", "response": None, "error": {"message": "too long"}}
    block = {"type": "text", "text": "c"}
    message = {"type": "message", "role": "assistant", "content": [block]}
    other = {"custom_id": "r3", "result": {"type": "succeeded", "message": message}}
    reading = read(asked, answered, failed, other)
    assert [(each.name, lines_of(each)) for each in reading.transcripts] == [
        ("r1", ["user: a", "ai: b"]),
        ("r3", ["ai: c"]),
    ]
    (refused,) = reading.refused
    assert refused.where == "line 3"
    assert refused.why.startswith("request r2: ")
    assert "too long" in refused.why


def test_one_call_is_read_as_objects():
    assert parse_objects(call("a", "b"), "call_log").messages[0] == UserMessage("a")


# Langfuse


def generation(time: int, input: Any, output: Any, **more: Any) -> dict[str, Any]:
    start = f"2026-05-01T10:00:0{time}Z"
    return {"type": "GENERATION", "startTime": start, "input": input, "output": output, **more}


def test_observations_of_a_session_are_one_conversation_in_the_order_of_time():
    first, second = chat("a", "b"), chat("c", "d")
    page = {
        "data": [
            generation(5, [*first, second[0]], second[1], traceId="t2", sessionId="s"),
            {"type": "SPAN", "traceId": "t1", "input": {"x": 1}, "output": None, "startTime": "1"},
            generation(1, json.dumps(first[:1]), json.dumps(first[1]), traceId="t1", sessionId="s"),
        ],
        "meta": {"page": 1},
    }
    reading = read(page)
    (transcript,) = reading.transcripts
    assert (reading.format, transcript.name) == ("langfuse", "s")
    assert lines_of(transcript) == ["user: a", "ai: b", "user: c", "ai: d"]
    assert "records other than model calls (1)" in transcript.losses[0].what


def test_traces_whose_input_is_only_what_is_new_are_one_conversation_of_their_session():
    traces = [
        {"id": f"t{n}", "sessionId": "s", "timestamp": str(n), "input": "more", "output": f"{n}"}
        for n in range(2)
    ]
    (transcript,) = read({"id": "s", "traces": traces}).transcripts
    assert lines_of(transcript) == ["user: more", "ai: 0", "user: more", "ai: 1"]


def test_a_trace_as_its_page_exports_it():
    trace = {"id": "t", "sessionId": None, "timestamp": "0", "input": "raw", "output": "b"}
    observed = generation(1, {"messages": chat("a")}, {"role": "assistant", "content": "b"})
    (transcript,) = read({"trace": trace, "observations": [observed]}).transcripts
    assert (transcript.name, lines_of(transcript)) == ("t", ["user: a", "ai: b"])


# LangSmith


def lc(kind: str, content: str) -> dict[str, Any]:
    id = ["langchain", "schema", "messages", f"{kind}Message"]
    return {"lc": 1, "type": "constructor", "id": id, "kwargs": {"content": content}}


def run(time: int, asked: list[Any], answered: str, **more: Any) -> dict[str, Any]:
    generations = [[{"text": answered, "message": lc("AI", answered)}]]
    return {
        "id": f"r{time}",
        "run_type": "llm",
        "start_time": str(time),
        "inputs": {"messages": [asked]},
        "outputs": {"generations": generations},
        **more,
    }


def test_runs_of_a_thread_are_one_conversation_and_chains_are_reported():
    about = {"extra": {"metadata": {"thread_id": "th"}}}
    later = run(2, [lc("Human", "c")], "d", **about)
    first = run(1, [lc("Human", "a")], "b", **about)
    chain = {"id": "c", "run_type": "chain", "inputs": {}, "outputs": {}, "child_runs": [first]}
    reading = read(later, chain)
    (transcript,) = reading.transcripts
    assert (reading.format, transcript.name) == ("langsmith", "th")
    assert lines_of(transcript) == ["user: a", "ai: b", "user: c", "ai: d"]
    assert "records other than model calls (1)" in transcript.losses[0].what


def test_runs_without_a_thread_are_of_one_run_if_they_go_on():
    first = run(1, [lc("Human", "a")], "b", trace_id="t", session_id="project")
    asked = [lc("Human", "a"), lc("AI", "b"), lc("Human", "c")]
    (transcript,) = read(first, run(2, asked, "d", trace_id="u", session_id="project")).transcripts
    assert (transcript.name, len(transcript.messages)) == ("t", 4)


def test_the_outermost_run_is_read_where_there_is_no_call():
    chain = {"id": "c", "run_type": "chain", "inputs": {"input": "a"}, "outputs": {"output": "b"}}
    (transcript,) = read(chain).transcripts
    assert lines_of(transcript) == ["user: a", "ai: b"]


# LangGraph


def checkpoint(step: int, messages: Iterable[Any], thread: str = "th") -> dict[str, Any]:
    return {
        "values": {"messages": [*messages]},
        "config": {"configurable": {"thread_id": thread, "checkpoint_id": f"c{step}"}},
        "metadata": {"step": step},
        "created_at": f"2026-05-01T10:00:0{step}Z",
    }


def flat(type: str, content: str) -> dict[str, Any]:
    return {"type": type, "content": content, "id": content}


@pytest.mark.parametrize("is_list", [True, False])
def test_checkpoints_are_one_thread_and_what_was_removed_stays(is_list):
    a, b, c, d = flat("human", "a"), flat("ai", "b"), flat("human", "c"), flat("ai", "d")
    history = [
        checkpoint(3, [c, d]),
        checkpoint(2, [a, b, c]),
        checkpoint(1, [a]),
        checkpoint(1, [b], "other"),
        checkpoint(0, []),
    ]
    reading = read(history) if is_list else read(*history)
    assert reading.format == "langgraph"
    found = {each.name: lines_of(each) for each in reading.transcripts}
    assert found == {"th": ["user: a", "ai: b", "user: c", "ai: d"], "other": ["ai: b"]}


# Stores, pages and other names


def test_a_chat_store_has_a_conversation_for_each_key():
    def message(role: str, text: str) -> dict[str, Any]:
        block = {"block_type": "text", "text": text}
        return {"role": role, "additional_kwargs": {}, "blocks": [block]}

    old = [{"role": "user", "content": "c", "additional_kwargs": {}}]
    store = {"u1": [message("user", "a"), message("assistant", "b")], "u2": old, "u3": [5]}
    reading = read({"store": store, "class_name": "SimpleChatStore"})
    assert {each.name: lines_of(each) for each in reading.transcripts} == {
        "u1": ["user: a", "ai: b"],
        "u2": ["user: c"],
    }
    assert [each.where for each in reading.refused] == ["conversation 3 (u3)"]


@pytest.mark.parametrize("name", ["conversation", "history"])
def test_messages_under_other_names(name):
    reading = read({"conversation_id": "h", name: chat("a", "b"), "language": "English"})
    (transcript,) = reading.transcripts
    assert (reading.format, transcript.name) == ("wrapped", "h")
    assert lines_of(transcript) == ["user: a", "ai: b"]
    assert [loss.what for loss in transcript.losses] == ["the property 'language'"]


@pytest.mark.parametrize("times", [(2, 1), (1, 2), (None, None)])
def test_a_page_of_a_thread_is_read_oldest_first(times):
    def message(role: str, value: str, created: int | None) -> dict[str, Any]:
        content = [{"type": "text", "text": {"value": value, "annotations": []}}]
        about = {"object": "thread.message", "thread_id": "th", "created_at": created}
        return {"id": value, "role": role, "content": content, **about}

    data = [message("assistant", "b", times[0]), message("user", "a", times[1])]
    (transcript,) = read({"object": "list", "data": data, "has_more": True}).transcripts
    in_order = ["user: a", "ai: b"]
    assert lines_of(transcript) == (in_order[::-1] if times == (1, 2) else in_order)
    assert transcript.name == "th"
    assert "other pages" in transcript.losses[0].what


def test_flat_calls_and_results_that_are_named_by_their_id():
    flat_call = {"id": "c1", "name": "find", "arguments": {"order": "A-1"}}
    turns = [
        *chat("a"),
        {"role": "assistant", "content": None, "tool_calls": [flat_call]},
        {"id": "c1", "role": "tool", "content": "none"},
    ]
    (transcript,) = read(turns).transcripts
    assert transcript.messages[1].tool_execution_requests[0].arguments == '{"order": "A-1"}'
    assert transcript.messages[2].id == "c1"
    assert isinstance(transcript.messages[2], ToolExecutionResultMessage)


def test_messages_are_instances_of_our_classes():
    (transcript,) = read(call("a", "b", system="s")).transcripts
    assert [*map(type, transcript.messages)] == [SystemMessage, UserMessage, AiMessage]


# Whatever is said

texts = st.text(min_size=1, max_size=6).filter(str.strip)
runs = st.lists(st.lists(texts, min_size=2, max_size=6), min_size=1, max_size=4)


def grown(run: list[str]) -> list[list[str]]:
    """The calls of a run. Each has all earlier messages, and an answer."""
    return [run[: n + 2] for n in range(0, len(run) - 1, 2)]


@given(runs, st.randoms(use_true_random=False))
def test_no_text_of_a_log_is_lost_whatever_is_between_the_calls_of_a_run(runs, random):
    waiting = [grown(run) for run in runs]
    calls = []
    while waiting := [each for each in waiting if each]:
        calls.append(call(*random.choice(waiting).pop(0)))
    reading = read(*calls)
    stored = [text_of(message) for each in reading.transcripts for message in each.messages]
    wanted = {text for each in runs for text in each[: len(each) // 2 * 2]}
    assert wanted <= {*stored}
    assert reading.refused == ()
    assert len(reading.transcripts) <= len(runs)


@given(st.lists(texts, min_size=2, max_size=6, unique=True))
def test_a_run_of_texts_that_differ_is_one_conversation_of_them(run):
    (transcript,) = read(*(call(*each) for each in grown(run))).transcripts
    assert [text_of(message) for message in transcript.messages] == run[: len(run) // 2 * 2]
