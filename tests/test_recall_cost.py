"""Recall against cost: `manage.py recall` with prices, the frontier and the recommendation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

import pytest
from django.core.management import CommandError, call_command

from chatmemory import (
    AiMessage,
    MessageType,
    MessageWindow,
    SystemMessage,
    TokenWindow,
    UserMessage,
    services,
)
from chatmemory.advice.options import is_of_first_half
from chatmemory.formats import stream_transcripts
from chatmemory.messages.estimators import count_tokens, estimator_for
from chatmemory.recall.cost import Call, bill_of, providers, rules_of
from chatmemory.recall.history import recorded_time

PRICES = ("--input", "2.50", "--cached", "0.25")
NAMES = ("", "cache_creation_", "cache_read_")


def rows_of(capsys, *arguments) -> tuple[dict, dict]:
    """The rows of the command by their policies, and its last line."""
    call_command("recall", *map(str, arguments), "--json")
    *rows, last = map(json.loads, capsys.readouterr().out.splitlines())
    return {row["policy"]: row for row in rows}, last["total"]


def test_sending_everything_is_cheaper_than_a_sliding_window(capsys, data_file):
    """100 support conversations, each counted alike: a limit of 4,000 tokens costs 1.19."""
    file = data_file("tau_bench_airline.openai_chat.json")
    policies = "token_window:4000,token_window:5000,low_water=0.5,everything"
    rows, total = rows_of(capsys, file, "--policies", policies, *PRICES)
    found = {name: (row["held"], round(row["relative_cost"], 2)) for name, row in rows.items()}
    assert found == {
        "token_window:4000": (1_612, 1.19),
        "token_window:5000,low_water=0.5": (1_611, 0.99),
        "everything": (1_676, 1.0),
    }
    assert {row["priced"] for row in rows.values()} == {"cache"}
    assert total["recommended"] == "everything"
    assert total["verdict"] == "send_everything"
    assert "No limit that holds enough facts costs 10 % less" in total["why"]
    rows, total = rows_of(capsys, file, "--policies", policies)
    assert rows["token_window:4000"]["relative_cost"] < 1
    assert {row["priced"] for row in rows.values()} == {"tokens"}


@pytest.mark.parametrize(
    ("sessions", "sliding", "in_blocks", "has_room"),
    [
        ("claude_sessions", (215, 2.05), (215, 0.64), True),
        pytest.param(
            "all_claude_sessions", (575, 1.58), (573, 0.71), False, marks=pytest.mark.long
        ),
    ],
)
def test_blocks_save_a_third_in_long_sessions(
    request, capsys, sessions, sliding, in_blocks, has_room
):
    files = request.getfixturevalue(sessions)
    policies = "token_window:80000,token_window:80000,low_water=0.5"
    rows, total = rows_of(capsys, *files, "--policies", policies, *PRICES)
    found = {name: (row["held"], round(row["relative_cost"], 2)) for name, row in rows.items()}
    assert found == {
        "token_window:80000": sliding,
        "token_window:80000,low_water=0.5": in_blocks,
    }
    if not has_room:  # the largest turn needs 155,575 tokens, under which nothing saves a tenth
        assert total["recommended"] == "everything"
        return
    assert total["verdict"] == "change"
    assert "low_water=" in total["recommended"]
    cost = re.search(r"; relative cost: (0\.\d\d)\.", total["why"])
    assert float(cost[1]) < 0.75


@pytest.mark.long
def test_the_frontier_has_what_no_other_policy_beats(capsys, data_file):
    file = data_file("tau_bench_airline.openai_chat.json")
    rows, total = rows_of(capsys, file, "--frontier", "--today", "token_window:2000", *PRICES)
    assert total["recommended"] == "everything"
    held = [(row["held"], row["relative_cost"]) for row in rows.values()]
    (today, *frontier) = held
    assert today[0] == 1_215
    assert today[1] == pytest.approx(1.08, abs=0.005)
    assert frontier == sorted(frontier)
    assert frontier[-1] == (1_676, 1.0)
    rows, _ = rows_of(capsys, file, "--frontier", "message_window", *PRICES)
    assert all(name.startswith(("message_window", "everything")) for name in rows)


def test_writing_to_a_cache_and_its_bounds_have_a_price(capsys, tmp_path):
    said = [
        {"role": "user", "content": "A-1182 please"},
        {"role": "assistant", "content": "A-1182"},
    ]
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(said * 4))
    policies = ("--policies", "message_window:2,everything")
    rows, _ = rows_of(capsys, file, *policies, *PRICES)
    short = rows["message_window:2"]
    assert short["read_tokens"] == 0
    assert rows["everything"]["read_tokens"] > 0
    assert short["relative_cost"] < 1
    dearer, _ = rows_of(capsys, file, *policies, *PRICES, "--write", "3.125")
    assert dearer["everything"]["written_tokens"] == rows["everything"]["written_tokens"]
    bounded, _ = rows_of(capsys, file, *policies, *PRICES, "--provider", "openai")
    assert bounded["everything"]["read_tokens"] == bounded["everything"]["written_tokens"] == 0


@pytest.mark.needs("lab")
def test_a_window_must_save_in_both_halves_of_the_conversations(db, capsys):
    """It saves in one half only, because the conversations of the other are short."""
    long = [SystemMessage("Be kind."), UserMessage("A-1182")]
    long += [UserMessage("and then " * 40), AiMessage("A-1182")] * 8
    short = [UserMessage("A-1182"), *[AiMessage("A-1182")] * 4]
    ids = [f"m{n}" for n in range(9)]
    for id in ids:
        services.create(id, MessageWindow(50))
        services.add(id, long if is_of_first_half(id) else short)
    policies = ("--policies", "token_window:500,low_water=0.5")
    _, total = rows_of(capsys, *policies)
    assert (total["verdict"], total["recommended"]) == ("keep", "message_window:50")
    for id in ids:
        if not is_of_first_half(id):
            services.delete(id)
    _, total = rows_of(capsys, *policies)
    assert total["verdict"] == "change"
    assert total["recommended"].startswith("message_window:")
    assert total["measured"]["conversations"] == sum(map(is_of_first_half, ids))


def test_a_conversation_that_needed_nothing_or_made_two_calls_weighs_nothing(db, capsys):
    services.create("none", MessageWindow(9))
    services.add("none", [UserMessage("Hm"), *[AiMessage("Well")] * 4])
    services.create("two", MessageWindow(9))
    services.add("two", [UserMessage("A-1182"), *[AiMessage("A-1182")] * 2])
    services.create("empty", MessageWindow(9))
    _, total = rows_of(capsys, "--policies", "message_window:1")
    assert total["measured"]["left_out"] == {"too_short": 2}
    assert "No fact was needed again, so limits are compared by cost alone" in total["why"]
    rows, _ = rows_of(capsys, "--prefix", "empty", "--policies", "message_window:1,everything")
    assert {row["relative_cost"] for row in rows.values()} == {None}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cached", "1"], "needs an input price"),
        (["--input", "-1"], "must be 0 or more"),
        (["--input", "1", "--write", "1"], "needs a cached price"),
        (["--share", "2"], "a number from 0 to 1"),
        (["--today", "nothing:1"], "is not a policy"),
    ],
)
def test_wrong_prices_are_refused(db, arguments, words):
    services.create("m", TokenWindow(99))
    with pytest.raises(CommandError, match=words):
        call_command("recall", *arguments)


def recorded_calls(path) -> Iterator[tuple[Call, int, int]]:
    """Each call of a recorded session but the first of a window, with the tokens that the provider
    billed for its prompt, and those of them that it read from its cache.

    What the agent sends beside the messages, its instructions and tools, is not recorded: it is
    what the first prompt has more than its messages.
    """
    with path.open("rb") as file:
        (read,) = stream_transcripts(file).conversations
    session, estimator = read.session, estimator_for("gpt-4o")
    tokens = [count_tokens(estimator, message) for message in session.messages]
    compactions = {each.summary: each for each in session.compactions}
    window, last, beside = [], None, 0
    for position, message in enumerate(session.messages):
        usage = message.attributes.get("claude_code", {}).get("usage", {})
        billed = [usage.get(f"{name}input_tokens", 0) for name in NAMES]
        if message.type is MessageType.AI and sum(billed):
            now, own = recorded_time(message), sum(tokens[each] for each in window)
            if last is None:
                beside = sum(billed) - own
            else:
                sent, before = last
                same = takewhile(lambda pair: pair[0] == pair[1], zip(sent, window, strict=False))
                shared = beside + sum(tokens[each] for each, _ in same)
                yield Call(position, beside + own, shared, now - before), sum(billed), billed[-1]
            last = [*window], now
        window.append(position)
        if position in compactions:
            window = [*compactions[position].window]


@pytest.mark.parametrize(
    ("sessions", "unread", "too_late"),
    [
        ("claude_sessions", 13, 13),
        pytest.param("all_claude_sessions", 23, 22, marks=pytest.mark.long),
    ],
)
def test_the_cached_share_of_recorded_sessions_is_predicted(request, sessions, unread, too_late):
    """Within 5 % of the bill, for calls that found anything in the cache. Nearly all other calls
    came after the cache's life of five minutes.
    """
    rules = replace(rules_of("anthropic"), life=None)  # some were kept for an hour
    missed = []
    for path in request.getfixturevalue(sessions):
        calls = list(recorded_calls(path))
        hits = [(call, billed, read) for call, billed, read in calls if read]
        missed += [call.age for call, _, read in calls if not read]
        recorded = sum(read for _, _, read in hits) / sum(billed for _, billed, _ in hits)
        predicted = bill_of((call for call, _, _ in hits), rules)
        assert predicted.read / predicted.tokens == pytest.approx(recorded, abs=0.05), path.name
    assert len(missed) == unread
    assert sum(age > providers()["anthropic"].rules.life for age in missed) == too_late
