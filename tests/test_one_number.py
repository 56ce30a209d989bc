"""One thing has one number: of a file and of the same stored conversations, by the commands, the
API, pages and agents.
"""

from __future__ import annotations

import json
from itertools import zip_longest

import pytest
from django.core.management import call_command

from chatmemory import MessageWindow, TokenWindow
from chatmemory.formats import read_transcripts
from chatmemory.models import Memory
from chatmemory.reading.finding import MemoryFilter
from chatmemory.recall.compactions import Level
from chatmemory.testing.asserting import read_runs
from chatmemory.testing.figures import figures_of_runs
from inspector.rooms.evidence.compactions import fleet_compactions
from inspector.rooms.evidence.page import CompactionsPage
from inspector.rooms.lab import reads, writes
from inspector.rooms.lab.addresses import FleetAddress
from inspector.shell.chosen import ChosenConversations
from tests.conversations import create_and_add, keep
from tests.images import made_once
from tests.rooms.agents.test_agents import EVERYTHING, answer_json

RUNS = (0, 5, 13, 36, 42, 55, 75, 80, 87, 92)  # every repetition is among them
POLICY = TokenWindow(1_000)
POLICIES = "token_window:1000,token_window:4000,everything"
COUNTED = ("recalls", "held", "nothing_lost", "user_repeated", "call_repeated", "calls")

pytestmark = [pytest.mark.django_db]


@pytest.fixture(scope="module")
def ten_runs(data_file) -> bytes:
    values = json.loads(data_file("tau_bench_airline.openai_chat.json").read_text("utf-8"))
    return json.dumps([values[n] for n in RUNS]).encode()


@made_once
def stored_runs(ten_runs):
    for n, run in enumerate(read_transcripts(ten_runs).transcripts):
        create_and_add(f"run-{n}", POLICY, run.messages)
        keep(f"run-{n}")


@pytest.fixture
def file(ten_runs, stored_runs, tmp_path):
    """A file of ten conversations, which are stored, too."""
    path = tmp_path / "ten.json"
    path.write_bytes(ten_runs)
    return path


def printed(capsys, *arguments):
    call_command(*arguments, "--json")
    return list(map(json.loads, capsys.readouterr().out.splitlines()))


def counted(rows):
    return [[row[name] for name in COUNTED] for row in rows]


def test_facts_needed_again(file, capsys, operator_client, client):
    *of_file, advice = printed(capsys, "recall", str(file), "--policies", POLICIES)
    *of_stored, stored_advice = printed(
        capsys, "recall", "--prefix", "run-", "--policies", POLICIES
    )
    assert of_file == of_stored
    of_both = "conversations", "verdict", "recommended"  # a file has no policy in force
    assert [advice["total"][name] for name in of_both] == [
        stored_advice["total"][name] for name in of_both
    ]
    answer = operator_client.get(f"/api/v1/recall/?prefix=run-&policies={POLICIES}").json()
    assert counted(answer["results"]) == counted(of_file)
    told = answer_json("recall", EVERYTHING, prefix="run-", limits=POLICIES)
    assert counted(told["results"]) == counted(of_file)
    pages = [
        operator_client.get(
            f"/c/run-{n}/compare/?as=json&"
            + "&".join(f"policy={each}" for each in ("token_window:1000", "token_window:4000"))
        ).json()
        for n in range(len(RUNS))
    ]
    for place, row in enumerate(of_file[:2]):
        summed = ("recalls", "held", "user_repeated", "call_repeated")
        for name in summed:
            assert sum(page[place][name] for page in pages) == row[name], name
        assert sum(page[place]["lost"] == 0 for page in pages) == row["nothing_lost"]
    query = FleetAddress.read({"prefix": "run-", "kind": "token_window", "limit": "1000"}).query
    writes.compute_figures(query, 60)
    measured = [each.measured for each in reads.fleet(query).known]
    assert sum(each.figures.recalls for each in measured) == of_file[0]["recalls"]
    assert sum(each.today.held for each in measured) == of_file[0]["held"]
    for row in of_file:
        lost = row["recalls"] - row["held"]
        assert lost >= row["user_repeated"] + row["call_repeated"]
        assert row["nothing_lost"] < len(RUNS) or not lost


def test_incidents(file, capsys, operator_client):
    *of_file, total = printed(capsys, "incidents", str(file), "--policy", "token_window:1000")
    *of_stored, stored_total = printed(capsys, "incidents", "--stored")
    assert total == stored_total
    assert total["total"]["user_repeated"] == 7
    assert total["total"]["forced"] == 2
    for row, stored in zip_longest(of_file, of_stored):
        assert row["incidents"] == stored["incidents"]
        address = f"/api/v1/memories/{stored['conversation']}/incidents/"
        assert operator_client.get(address).json()["incidents"] == row["incidents"]
        told = answer_json("incidents", EVERYTHING, conversation=stored["conversation"])
        used = [each for each in row["incidents"] if each["kind"] == "used_unseen"]
        others = [each for each in row["incidents"] if each["kind"] != "used_unseen"]
        assert told["count"] == len(others)
        assert told["used_without_mention"] == sum(len(each["facts"]) for each in used)
    *_, recalled = printed(capsys, "recall", str(file), "--policies", "token_window:1000")[:1]
    facts = [
        fact["fact"]
        for row in of_file
        for each in row["incidents"]
        for fact in (each["facts"] if each["kind"] == "used_unseen" else each["facts"][:1])
        if "=" not in fact["fact"]
    ]
    assert recalled["recalls"] - recalled["held"] == len(facts)


def test_checks(file, capsys):
    figures = figures_of_runs(read_runs([file], "token_window:1000"))
    (row, *_) = printed(capsys, "recall", str(file), "--policies", "token_window:1000")
    for name in ("recalls", "held", "user_repeated", "call_repeated"):
        assert figures[name] == row[name], name
    (*_, total) = printed(capsys, "incidents", str(file), "--policy", "token_window:1000")
    assert figures["forced"] == total["total"]["forced"]


def test_a_repetition_is_never_beside_nothing_lost(capsys, tmp_path):
    """A user who has to say again what the assistant never used has lost it, too."""
    texts = ["My order is A-1182.", "Thanks.", "And now?", "Which order is it?", "A-1182"]
    roles = ("user", "assistant")
    said = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    path = tmp_path / "one.json"
    path.write_text(json.dumps(said))
    (of_file, *_) = printed(capsys, "recall", str(path), "--policies", "message_window:2")
    create_and_add(
        "one", MessageWindow(9), read_transcripts(path.read_bytes()).transcripts[0].messages
    )
    (of_stored, *_) = printed(capsys, "recall", "--prefix", "one", "--policies", "message_window:2")
    assert of_file == of_stored
    assert counted([of_file]) == [[1, 0, 0, 1, 0, 2]]


def rewound(content: bytes, place: int) -> bytes:
    """A session in which the user went back to the step at a share of them, of any type, and said
    something else.
    """
    records = [json.loads(line) for line in content.splitlines()]
    steps = [each for each in records if each.get("type") in ("user", "assistant", "system")]
    prompt = next(each for each in steps if isinstance(each.get("message", {}).get("content"), str))
    at = steps[place * (len(steps) - 1) // 4]
    said = {"role": "user", "content": "Stop it."}
    again = dict(prompt, uuid=f"rewound-{place}", parentUuid=at["uuid"], message=said)
    return content + json.dumps(again).encode() + b"\n"


def continued(content: bytes, more: int) -> bytes:
    """A session to which so many messages were added."""
    records = [json.loads(line) for line in content.splitlines()]
    spoken = [each for each in records if each.get("type") in ("user", "assistant")]
    prompt = next(each for each in spoken if isinstance(each["message"]["content"], str))
    lines, parent = [content.rstrip(b"\n")], spoken[-1]["uuid"]
    for n in range(more):
        said = {"role": "user", "content": f"And then, part {n}?"}
        each = dict(prompt, uuid=f"more-{n}", parentUuid=parent, message=said)
        lines.append(json.dumps(each).encode())
        parent = each["uuid"]
    return b"\n".join(lines) + b"\n"


def check_compactions(folder, capsys, client, expected):
    """The command, the page, REST and agents count the compactions of files as `expected`, by
    level.
    """
    for level, sums in expected.items():
        *_, total = printed(capsys, "compactions", str(folder), "--level", level)
        assert total["total"] == sums
    call_command("import_transcripts", str(folder))
    capsys.readouterr()
    for memory in Memory.objects.all():
        keep(memory.pk)
    found = fleet_compactions(MemoryFilter())
    steps = [
        client.get(f"/api/v1/memories/{each.memory_id}/steps/{each.evidence.step}/").json()
        for each in found.measured
    ]
    told = {
        (memory_id, each["step"]): each
        for memory_id in {each.memory_id for each in found.measured}
        for each in answer_json("what_did_summaries_lose", conversation=memory_id)["summaries"]
    }
    for level, sums in expected.items():
        page = CompactionsPage(found, ChosenConversations.read({}), Level(level))
        assert (page.count, page.needed) == (sums["compactions"], sums["needed"])
        assert page.rows[-1].held == sums["held"]
        for each, step in zip(found.measured, steps, strict=True):
            assert told[each.memory_id, each.evidence.step][level] == step["evidence"][level]
        for name in ("needed", "held"):
            assert sum(step["evidence"][level][name] for step in steps) == sums[name]


def totals_of(capsys, files):
    found = {}
    for level in ("all", "told"):
        *_, total = printed(capsys, "compactions", *map(str, files), "--level", level)
        found[level] = total["total"]
    return found


def test_compactions(claude_sessions, capsys, operator_client, tmp_path):
    """Each compaction counts once, with a rewind to any step as without."""
    expected = totals_of(capsys, claude_sessions[:2])
    for n, file in enumerate(claude_sessions[:2]):
        (tmp_path / f"session-{n}.jsonl").write_bytes(rewound(file.read_bytes(), 2 * n + 1))
    check_compactions(tmp_path, capsys, operator_client, expected)
    assert Memory.objects.exclude(branched_from=None).exists()


@pytest.mark.long
@pytest.mark.parametrize("place", range(5))
def test_compactions_with_other_rewinds(claude_sessions, capsys, operator_client, tmp_path, place):
    expected = totals_of(capsys, claude_sessions)
    for n, file in enumerate(claude_sessions):
        (tmp_path / f"session-{n}.jsonl").write_bytes(rewound(file.read_bytes(), place))
    check_compactions(tmp_path, capsys, operator_client, expected)


@pytest.mark.long
def test_compactions_of_long_sessions(claude_sessions, capsys, operator_client, tmp_path):
    for n, file in enumerate(claude_sessions):
        (tmp_path / f"session-{n}.jsonl").write_bytes(continued(file.read_bytes(), 1_200))
    expected = totals_of(capsys, [tmp_path])
    assert expected["all"]["compactions"]
    check_compactions(tmp_path, capsys, operator_client, expected)
