"""The doctor finds ill windows and nothing else: in a fleet, on its page, over HTTP and in CI."""

from __future__ import annotations

import json
import os

import pytest
from django.core.management import call_command
from django.utils.html import strip_tags

from chatmemory import (
    AiMessage,
    MessageWindow,
    TokenWindow,
    UserMessage,
    flags,
    message_to_dict,
    services,
)
from chatmemory.access.tokens import create_token
from chatmemory.exceptions import InvalidValue
from chatmemory.explain import captions
from chatmemory.explain.reasons import why_left
from chatmemory.ledger.verification import verify
from chatmemory.lint import PROVIDERS
from chatmemory.models import Step
from chatmemory.reading import overview, steps
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.overview import overview_page
from chatmemory.roles import Role
from chatmemory.signals import problems_found
from inspector.rooms.doctor.choosing import choose_providers
from inspector.rooms.doctor.reads import IllFilter, doctor_counts, doctor_page

from ...conversations import BRIEF, HI, call, create_and_add, result, users
from ...peaks import MEGABYTE, bounded_growth
from .diagnosed import diagnosed, kept

pytestmark = [pytest.mark.django_db, pytest.mark.database]

HELLO = AiMessage("On its way.")
IN_USE = ("openai", "openai_responses", "anthropic", "gemini")


@pytest.fixture(autouse=True)
def in_use(db):
    choose_providers("", IN_USE)


# What is said last, and the rule that it breaks; nothing for healthy ones
SEEDS = {
    "": [HI, call("7"), result("7"), HELLO],
    "dangling_call": [HI, call("7"), HI],
    "orphan_result": [HI, result("8"), HELLO],
    "bad_arguments": [HI, call("7", arguments="[]"), result("7")],
    "empty_content": [HI, AiMessage(""), HI],
    "system_in_middle": [HI, BRIEF, HELLO],
}
REFUSED = {"dangling_call", "orphan_result", "bad_arguments", "empty_content"}


def seed(count: int) -> dict[str, list[str]]:
    """Make conversations, of which every second one is healthy; return the ids by seed."""
    ids: dict[str, list[str]] = {name: [] for name in SEEDS}
    faults = [name for name in SEEDS if name]
    for n in range(count):
        name = faults[n // 2 % len(faults)] if n % 2 else ""
        memory_id = f"chat-{n}"
        create_and_add(memory_id, MessageWindow(20), [HI, call("1"), result("1"), HELLO])
        services.add(memory_id, SEEDS[name])
        ids[name].append(memory_id)
    diagnosed()
    return ids


def ids_in_list(which: IllFilter) -> set[str]:
    """Walk through all pages of the list."""
    found, cursor = [], ""
    while True:
        page = doctor_page(which, cursor=cursor, size=7)
        found += [each.memory.id for each in page.rows]
        if page.next is None:
            assert len(found) == len(set(found))
            return set(found)
        cursor = page.next


@pytest.mark.parametrize("size", [20, pytest.param(1000, marks=pytest.mark.long)])
def test_in_a_fleet_all_faults_are_found_and_none_falsely(size):
    ids = seed(size)
    for rule in SEEDS:
        if rule:
            assert ids_in_list(IllFilter(rule)) == set(ids[rule]), rule
    refused = {memory_id for rule in REFUSED for memory_id in ids[rule]}
    assert ids_in_list(IllFilter()) == refused
    counts = doctor_counts()
    assert counts.refused == len(refused)
    assert counts.by_rule == {rule: len(found) for rule, found in ids.items() if rule}
    assert counts.by_provider["openai"] == len(ids["dangling_call"]) + len(ids["orphan_result"])
    assert counts.changed == 0


def test_what_nobody_has_examined_is_no_count(operator_client):
    assert doctor_counts().refused == 0  # there is nothing to examine
    create_and_add("m", MessageWindow(20), [HI, HELLO, HI, call("1"), HI, HELLO])
    assert (doctor_counts().refused, doctor_counts().changed) == (None, 1)
    assert operator_client.get("/api/v1/doctor/").json()["refused"] is None
    diagnosed()
    assert (doctor_counts().refused, doctor_counts().changed) == (1, 0)


def test_a_fault_is_known_from_the_step_on_at_which_it_began():
    create_and_add("m", MessageWindow(20), [HI, HELLO, HI, call("1"), HI, HELLO])
    diagnosed()
    (ill,) = doctor_page(IllFilter()).rows
    (problem,) = ill.problems
    assert (problem.rule, problem.since, problem.seq) == ("dangling_call", 5, 4)
    assert problem.refused_by == IN_USE
    assert Step.objects.get(memory="m", n=5).at == ill.ill_at
    services.add("m", [HI])
    (before,) = doctor_page(IllFilter()).rows
    assert (before.is_current, before.known_until, doctor_counts().changed) == (False, 6, 1)
    diagnosed()
    (after,) = doctor_page(IllFilter()).rows
    assert (after.is_current, after.problems) == (True, ill.problems)
    services.clear_messages("m")
    diagnosed()
    assert doctor_page(IllFilter()).rows == ()


def test_an_unknown_rule_or_provider_is_refused():
    for which in (IllFilter("nonsense"), IllFilter(provider="acme")):
        with pytest.raises(InvalidValue):
            doctor_page(which)


def test_without_any_conversation_the_page_leads_to_where_they_come_in(operator_client):
    page = operator_client.get("/doctor/").content.decode()
    assert "There are no conversations yet." in page
    assert "Add conversations" in page
    create_and_add("fine", MessageWindow(20), SEEDS[""])
    diagnosed()
    assert "There are no conversations yet." not in operator_client.get("/doctor/").content.decode()


def test_the_page_lists_them_and_leads_to_the_step(operator_client, django_assert_max_num_queries):
    create_and_add("m", MessageWindow(20), SEEDS["dangling_call"])
    create_and_add("fine", MessageWindow(20), SEEDS[""])
    diagnosed()
    with django_assert_max_num_queries(12):
        page = operator_client.get("/doctor/").content.decode()
    assert "Your providers would reject 1 conversation now." in page
    assert "a tool call without its result" in page
    assert "Since step 3: another message followed a tool call" in page
    assert 'href="/c/m/?at=3"' in page
    assert "/c/fine/" not in page.partition("Providers you do not use")[0]
    listed = operator_client.get("/doctor/?provider=openai&rule=dangling_call").content.decode()
    assert 'href="/c/m/?at=3"' in listed
    filtered = operator_client.get("/doctor/?provider=gemini&rule=orphan_result").content.decode()
    assert "No examined conversation has this problem." in filtered
    rules = operator_client.get("/doctor/rules/").content.decode()
    assert "A tool result without its tool call" in rules
    names = "rejected by OpenAI, OpenAI Responses, Anthropic, Gemini"
    assert names in operator_client.get("/c/m/").content.decode()


def test_a_token_with_a_prefix_has_a_doctor_of_its_own(client):
    for memory_id in ("acme/1", "other"):
        create_and_add(memory_id, MessageWindow(9), SEEDS["dangling_call"])
        diagnosed(memory_id)
    secret = create_token("acme", Role.VIEWER, prefix="acme/")
    asked = {"headers": {"Authorization": f"Bearer {secret}"}}
    answer = client.get("/api/v1/doctor/?provider=openai&size=1", **asked).json()
    assert [each["id"] for each in answer["results"]] == ["acme/1"]
    assert (answer["refused"], answer["next"]) == (1, None)
    assert answer["results"][0]["problems"][0]["since"] == 3
    assert client.get("/api/v1/doctor/?rule=nonsense", **asked).status_code == 422


def test_the_command_fails_on_what_would_be_refused(capsys, tmp_path):
    create_and_add("fine", MessageWindow(9), SEEDS[""])
    call_command("doctor")
    assert capsys.readouterr().out == "0 would be rejected; 0 only mishandled\n"
    create_and_add("m", MessageWindow(9), SEEDS["dangling_call"])
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", "--provider", "openai")
    assert ended.value.code == 1
    assert capsys.readouterr().out.startswith(
        "m: OpenAI, refused: A tool call without its result. Since step 3"
    )
    calls = [{"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}}]
    chat = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "user", "content": "hi"},
    ]
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(chat))
    with pytest.raises(SystemExit):
        call_command("doctor", str(file), "--json")
    *rows, total = map(json.loads, capsys.readouterr().out.splitlines())
    assert total == {"total": {"refused": 1, "mishandled": 0}}
    refused = {row["provider"] for row in rows if row["rule"] == "dangling_call"}
    assert refused == set(PROVIDERS)


# Flags of messages that the limit has no room for. tests/test_diagnosis.py has the others.

FLAGGED = MemoryFilter(flag=flags.flag_named("any"))


def test_a_message_too_big_is_flagged_for_a_while(db):
    create_and_add("m", TokenWindow(20), [HI, UserMessage("much too long " * 20)])
    assert kept().oversized_step == 2
    assert [row.memory.id for row in overview_page(FLAGGED).rows] == ["m"]
    services.add("m", [HI] * 40)
    assert kept().oversized_step is None
    assert overview.count(FLAGGED) == 0


def test_a_message_that_left_as_it_came_was_never_in_memory(db):
    """Neither is too big for the limit, but the call had to go for the result."""
    found = result("1", "found " * 26)
    create_and_add("m", TokenWindow(40), [HI, call("1"), found, HI])
    assert (kept().missed_step, kept().oversized_step) == (3, None)
    told = captions.caption(steps.step("m", 3).change).summary
    assert told.startswith("Tool result #3 never reached the model, +")
    never = MemoryFilter(flag=flags.flag_named("never_in_memory"))
    assert [overview.count(which) for which in (never, FLAGGED)] == [1, 1]
    services.add("m", [HI] * 40)
    assert kept().missed_step is None
    assert [overview.count(which) for which in (never, FLAGGED)] == [0, 0]
    assert verify("m") is None


def test_in_a_window_of_one_only_the_system_message_makes_others_oversized(db):
    create_and_add("one", MessageWindow(1), [BRIEF, HI])
    assert kept("one").oversized_step == 2
    why = why_left(steps.step("one", 2).change, 2)
    assert why.summary == (
        "The system message alone fills the limit. It takes 1 of 1 message: nothing else can stay."
    )
    create_and_add("other", MessageWindow(1), [HI, HI])
    services.set_messages("other", [HI, UserMessage("you")])
    assert kept("other").oversized_step is None
    assert [verify(memory_id) for memory_id in ("one", "other")] == [None, None]


@pytest.mark.long
def test_many_results_of_one_call_take_no_memory(operator_client):
    """A call with 3,000 ids is answered in parts, and examined after each."""
    ids = [f"call-{n}" for n in range(3_000)]
    create_and_add("m", MessageWindow(9_000), [HI, call(*ids)])
    diagnosed("m")
    with bounded_growth(os.getpid(), 60 * MEGABYTE):
        for first in range(0, len(ids), 500):
            answers = [result(id) for id in ids[first : first + 500]]
            messages = [message_to_dict(each) for each in answers]
            added = operator_client.post(
                "/api/v1/memories/m/messages/", {"messages": messages}, "application/json"
            )
            assert added.status_code == 201, added.content
            found = diagnosed("m")
    assert found.listed == ()


def test_metrics_count_what_broke_since_the_last_look(django_capture_on_commit_callbacks):
    told = []

    def hear(memory_id: str, new: tuple[str, ...], **_: object) -> None:
        told.append((memory_id, new))

    problems_found.connect(hear)
    try:
        create_and_add("m", MessageWindow(20), [HI])
        for more in ([call("1"), HI], [HI], [result("2")]):
            services.add("m", more)
            with django_capture_on_commit_callbacks(execute=True):
                diagnosed("m")
    finally:
        problems_found.disconnect(hear)
    assert told == [("m", ("dangling_call",)), ("m", ("orphan_result",))]


def test_an_error_that_no_rule_knows_is_explained_with_its_numbers(operator_client, db):
    """The limit that fits, and the conversations near it; rates, and the place in a request."""
    long = "prompt is too long: 2150 tokens > 200 maximum"
    create_and_add("near", TokenWindow(9_000), users("word " * 190))
    create_and_add("small", TokenWindow(9_000), users("word"))

    def answer(error: str) -> str:
        page = operator_client.post("/doctor/error/", {"error": error}).text
        return " ".join(strip_tags(page[page.index('id="found"') :]).split())

    said = answer(long)
    assert "The prompt is too long" in said
    assert "The prompt had 2,150 tokens, but 200 fit: 1,950 tokens too many." in said
    assert "Set a limit of at most 200 tokens." in said
    assert "near 19" in said
    assert "small" not in said
    assert "A rate limit was exceeded" in answer('{"error": {"type": "rate_limit_error"}}')
    place = "The error is about message 1 of the request, which has the path messages[0].role."
    assert place in answer("Unsupported value: messages.[0].role")
    assert "The cause may be the model" in answer("no such model")
