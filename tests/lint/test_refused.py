"""`chatmemory doctor FILE --policies …` and `--laws`, without a database."""

from __future__ import annotations

import json
from argparse import ArgumentParser

from chatmemory.printing import Printer
from chatmemory.reports import doctor


def openai_messages(*roles: str) -> list[dict]:
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    known = {
        "user": {"role": "user", "content": "When?"},
        "call": {"role": "assistant", "content": None, "tool_calls": [call]},
        "result": {"role": "tool", "tool_call_id": "c", "content": "found"},
        "answer": {"role": "assistant", "content": "On Friday."},
    }
    return [known[role] for role in roles]


def rows(*arguments: str) -> tuple[int, list[dict]]:
    parser, lines = ArgumentParser(), []
    doctor.add_arguments(parser)
    options = vars(parser.parse_args(arguments))
    code = doctor.report(options, Printer(lines.append, lines.append, as_json=True))
    return code, [json.loads(line) for line in lines]


def test_the_prompts_that_a_policy_would_let_a_provider_refuse(tmp_path):
    file = tmp_path / "chat.json"
    file.write_text(
        json.dumps(openai_messages("user", "call", "result", "user", "answer", "call", "result"))
    )
    policies = "message_window:3,message_window:3,snap_to_user=true,everything"
    code, found = rows(str(file), "--provider", "gemini", "--policies", policies)
    assert code == 0
    # [call, result, user] before the answer, and [answer, call, result] at the end
    assert [(row["refused"], row["last"]) for row in found[:3]] == [(1, 1), (0, 1), (0, 1)]
    assert found[0]["prompts"] == 3
    assert found[-1] == {"total": {"conversations": 1}}


def test_the_laws_are_printed_with_their_verdicts():
    code, found = rows("--laws")
    assert code == 0
    assert found[-1]["total"]["broken"] == 0
    assert {"rule", "provider", "severity", "bad", "good", "source", "dated"} <= found[0].keys()
