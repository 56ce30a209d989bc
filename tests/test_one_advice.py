"""A fleet of 60 conversations of four kinds: every surface prints the same advice."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from django.core.management import call_command

from benchmarks.advised import POLICIES, fleet, huge, write
from chatmemory import (
    MessageWindow,
    UserMessage,
    policies_from_text,
    policy_from_text,
    recall,
    services,
    text_of_policy,
)
from chatmemory.advice import Verdict
from chatmemory.advice import words as words_of_advice
from chatmemory.ledger import protocol
from chatmemory.reading import conversations
from chatmemory.reading.history import all_messages
from chatmemory.recall.cost import rules_of
from inspector.rooms.doctor.choosing import choose_providers
from inspector.rooms.doctor.largest import short_windows
from inspector.rooms.doctor.writes import current_diagnosis
from inspector.rooms.lab import writes
from inspector.rooms.lab.addresses import FleetAddress
from inspector.rooms.lab.costs import how_much_more
from inspector.rooms.lab.figures import figures_now
from inspector.rooms.lab.page import FleetPage
from inspector.rooms.lab.reads import fleet as read_fleet
from tests.conversations import create_and_add, result
from tests.images import made_once
from tests.inspector.markup import tree, words
from tests.rooms.agents.test_agents import EVERYTHING, answer_json

pytestmark = pytest.mark.django_db
CACHED, WRITE = 0.1, 1.0  # of OpenAI, the provider whose cache is used if none is chosen
PRICES = {"provider": "openai", "input": 1, "cached": CACHED, "write": WRITE}


EACH, WHOLE = 3, 15  # conversations of a kind: usually, and of the whole fleet


def make(each: int) -> list[str]:
    found = list(fleet(each))
    for one in found:
        create_and_add(one.id, one.policy, one.messages)
        services.keep(one.id)
    return [one.id for one in found]


@made_once
def made():
    return make(EACH)


@pytest.fixture
def whole(db):
    return make(WHOLE)


def lab_page(**parameters: str) -> FleetPage:
    address = FleetAddress.read(parameters).with_usual_kind(parameters)
    while writes.compute_figures(address.query, 60):
        pass
    return FleetPage(read_fleet(address.query), address)


# An independent statement of what is better in every way: by replays of the messages alone


def cost_of(row) -> float:
    return row.prompt_tokens - (1 - CACHED) * row.read_tokens - (1 - WRITE) * row.written_tokens


class Replayed:
    """A stored conversation under any policy, by replay alone."""

    def __init__(self, memory_id: str) -> None:
        self.id, (self.known,) = memory_id, figures_now([memory_id], {})
        self._messages = all_messages(memory_id)
        tried, figures = self.known.tried, self.known.figures
        self.rivals = [None] + [
            tried.policy(variant, limit)
            for variant, limits in figures.points.items()
            for limit in limits
            if limit >= figures.turn and (figures.clears or not tried.clears_beside(variant))
        ]

        self._effects = {}
        self._replay(self.rivals)

    def _replay(self, policies) -> None:
        rules = rules_of(PRICES["provider"])
        *rows, whole = recall(self._messages, [*policies, None], rules=rules)
        for policy, row in zip(policies, rows, strict=True):
            repeated = row.user_repeated + row.call_repeated
            self._effects[policy] = row.held, repeated, cost_of(row) / cost_of(whole)

    def effect(self, policy) -> tuple[int, int, float]:
        """Return what a policy holds and repeats, and its cost beside sending everything."""
        if policy not in self._effects:
            self._replay([policy])
        return self._effects[policy]

    def is_dominated(self, policy) -> bool:
        held, repeated, cost = self.effect(policy)
        found = map(self.effect, self.rivals)
        return any(h >= held and r <= repeated and c < cost - 1e-9 for h, r, c in found)

    def allowed_names(self) -> set[str]:
        """Return the names of all options that may be named: today's, and what nothing beats."""
        fine = [None, *(each for each in self.rivals if each and not self.is_dominated(each))]
        names = {words_of_advice.policy_long(each) for each in fine}
        today = words_of_advice.policy_long(self.known.policy)
        kept = today.replace("Set the limit to", "Keep the limit of")
        fixed = {kept, "Keep sending everything", "Everything"}
        cheapest = {each.replace("Set the limit to", "Cheapest limit:") for each in names}
        return names | cheapest | fixed | {words_of_advice.policy_short(each) for each in fine}


def offered(html: str) -> set[str]:
    """Return the policies that a page offers: in forms with a verb, in links to settings, and in
    replays under a limit.
    """
    forms = (each for each in tree(html).iter("form") if each.get("method") == "post")
    fields = (field for form in forms for field in form.iter("input"))
    in_forms = {field.get("value") for field in fields if field.get("name") == "policy"}
    in_links = re.findall(r'href="[^"]*?(?:settings/)?\?(?:[^"]*&amp;)?limit=(\d+)', html)
    return in_forms | {f"token_window:{each}" for each in in_links}


def named(html: str) -> set[str]:
    """Return the names of options on a page: the title of its advice, and the other ways."""
    found = []
    for each in tree(html).iter():
        if each.get("id") == "advice-title":
            found.append(each)
        if each.get("class") == "adv__or":
            found += each.iter("b")
    return {" ".join(text.text for text in each.iter("text")) for each in found}


def evidence_of(client, memory_id: str) -> str:
    """Return the words of the evidence file of a conversation."""
    sent = client.post(f"/c/{memory_id}/evidence/", {"download": "yes"})
    return words(b"".join(sent) if sent.streaming else sent.content)


def named_by_each_surface(client, api, memory_id: str) -> dict[str, set[str]]:
    """Return the policies that each surface offers, beside the one in force."""
    page, compare = (client.get(f"/c/{memory_id}/{rest}") for rest in ("", "compare/"))
    columns = client.get(f"/c/{memory_id}/compare/?as=json").json()
    incident = client.get(f"/c/{memory_id}/?incident=1").text
    lab = lab_page(prefix=memory_id)
    of_lab = filter(None, (lab.advice.pick, *lab.advice.others))
    query = urlencode({"prefix": memory_id, "policies": "everything", **PRICES})
    return {
        "page": offered(page.text),
        "incident": offered(incident),
        "settings": offered(client.get(f"/c/{memory_id}/settings/").text),
        "compare": offered(compare.text),
        "columns": {each["policy"] for each in columns[1:-1]},
        "lab": {each.text for each in of_lab} | offered(client.get(lab.address.link()).text),
        "home": offered(client.get("/").text),
        "MCP": {answer_json("recall", EVERYTHING, prefix=memory_id, **PRICES)["recommended"]},
        "API": {api.get(f"/api/v1/recall/?{query}").json()["recommended"]},
    }


def check_no_surface_names_what_is_dominated(client, api, memory_ids: list[str]) -> None:
    for memory_id in memory_ids:
        each = Replayed(memory_id)
        for surface, texts in named_by_each_surface(client, api, memory_id).items():
            for text in texts - {None, text_of_policy(each.known.policy)}:
                (policy,) = policies_from_text(text)
                assert not each.is_dominated(policy), (memory_id, surface, text)
        allowed = each.allowed_names()
        for rest in ("", "compare/"):
            assert named(client.get(f"/c/{memory_id}/{rest}").text) <= allowed
        lab = lab_page(prefix=memory_id)
        assert named(client.get(lab.address.link()).text) <= allowed


def check_all_surfaces_print_the_same_figures(client, api, memory_ids: list[str]) -> None:
    for memory_id in memory_ids:
        each = Replayed(memory_id)
        today = each.effect(each.known.policy)
        compared = client.get(f"/c/{memory_id}/compare/")
        rows = client.get(f"/c/{memory_id}/compare/?as=json").json()
        query = f"prefix={memory_id}&policies={rows[0]['policy']}"
        found = api.get(f"/api/v1/recall/?{query}&{urlencode(PRICES)}").json()
        limits = rows[0]["policy"]
        told = answer_json("recall", EVERYTHING, prefix=memory_id, limits=limits, **PRICES)
        lab = lab_page(prefix=memory_id)
        assert rows[0]["held"] == found["results"][0]["held"] == lab.advice.today.held == today[0]
        assert told["results"][0]["held"] == today[0]
        costs = rows[0]["relative_cost"], found["results"][0]["relative_cost"]
        assert (*costs, lab.advice.today.cost) == pytest.approx((today[2],) * 3)
        verdicts = found["verdict"], told["verdict"], lab.advice.verdict.value
        assert len(set(verdicts)) == 1, verdicts
        assert found["recommended"] == lab.advice.recommended == told["recommended"]
        file = evidence_of(client, memory_id)
        assert lab.card.title in file
        assert lab.card.title in words(compared.content)
        percent = round(100 * abs(round(today[2], 2) - 1))
        for said in (words(compared.content), file):
            assert not percent or f"costs {percent} %" in said
        check_home(memory_id, today[2])
        check_previews(client, each, lab)


def check_home(memory_id: str, cost: float) -> None:
    """The overview's line about a conversation says what its pages say."""
    percent = round(100 * (round(cost, 2) - 1))
    line = how_much_more(memory_id)
    assert line.startswith(f"{percent} % more than sending everything") if percent > 0 else not line


def check_previews(client, each: Replayed, lab: FleetPage) -> None:
    """Previews of what is advised, and of the same limit in settings, say what the lab has."""
    today, pick = lab.advice.today, lab.advice.pick
    if lab.advice.is_change and pick is not None:
        asked = words(client.post(f"/c/{each.id}/adopt/", {"policy": pick.text}).content)
        assert f"{today.cost:.2f} → {pick.cost:.2f}" in asked
        assert not pick.needed or f"{today.held} → {pick.held} of {pick.needed}" in asked
    other = replace(each.known.policy, limit=each.known.policy.limit * 2)
    held, _, cost = each.effect(other)
    asked = words(client.get(f"/c/{each.id}/settings/?limit={other.limit}").content)
    assert f"{today.cost:.2f} → {cost:.2f}" in asked
    assert not today.needed or f"{today.held} → {held} of {today.needed}" in asked


def test_no_surface_names_what_is_dominated(made, operator_client, api):
    check_no_surface_names_what_is_dominated(operator_client, api, made[::EACH])


def test_all_surfaces_print_the_same_figures(made, operator_client, api):
    check_all_surfaces_print_the_same_figures(operator_client, api, made[::EACH])


@pytest.mark.long
def test_no_surface_of_the_whole_fleet_names_what_is_dominated(whole, operator_client, api):
    check_no_surface_names_what_is_dominated(operator_client, api, whole)
    check_all_surfaces_print_the_same_figures(operator_client, api, whole)


@pytest.fixture
def short(db):
    """Two windows that are smaller than their largest turns: a higher limit is good for the first
    one, and beaten by sending everything in the second one.
    """
    lean = next(each for each in fleet(1) if each.id.startswith("lean"))
    create_and_add("short-lean", replace(lean.policy, limit=200), lean.messages)
    letter = UserMessage("Read this letter: " + "it was late " * 900)
    said = [*lean.messages[:20], letter, *lean.messages[20:] * 2]
    create_and_add("short-huge", replace(lean.policy, limit=2_000), said)
    for memory_id in ("short-lean", "short-huge"):
        services.keep(memory_id)
    create_and_add("short-unread", replace(lean.policy, limit=200), lean.messages)
    current_diagnosis("short-unread")


def test_the_doctor_makes_room_only_by_what_is_not_dominated(short, operator_client):
    preview = operator_client.post("/doctor/raise/")
    chosen = {
        memory_id: policy_from_text(text)
        for memory_id, (text, _) in json.loads(preview.context["policies"]).items()
    }
    needed = {each.memory_id: each.raised for each in short_windows()}
    assert chosen.keys() == {"short-lean", "short-huge"}
    assert needed.keys() - chosen.keys() == {"short-unread"}
    assert Replayed("short-huge").is_dominated(needed["short-huge"])
    assert chosen["short-huge"].meters_only
    assert chosen["short-lean"] == needed["short-lean"]
    assert not Replayed("short-lean").is_dominated(needed["short-lean"])
    said = words(preview.content)
    assert "Conversations not counted: 1 not read yet." in said
    assert "2,000 tokens → sending everything" in said
    assert "send everything instead" not in said
    before, after = (
        sum(Replayed(id).effect(policy)[2] for id, policy in policies.items()) / 2
        for policies in (
            {each.memory_id: each.policy for each in short_windows() if each.memory_id in chosen},
            {id: None if each.meters_only else each for id, each in chosen.items()},
        )
    )
    assert f"{before:.2f} → {after:.2f}" in said


def check_rows_and_a_huge_conversation(messages: int) -> None:
    page = lab_page()
    assert page.advice.verdict is Verdict.GROUPS_DIFFER
    assert page.advice.pick is None
    before = {row.key: (row.advice.verdict, row.advice.recommended) for row in page.groups}
    assert before == {
        "desk-": (Verdict.SEND_EVERYTHING, "everything"),
        "agent-": (Verdict.CHANGE, before["agent-"][1]),
        "chat-": (Verdict.CHEAPEST, before["chat-"][1]),
        "lean-": (Verdict.KEEP, "token_window:350"),
    }
    for row in page.groups:
        own = lab_page(members=row.key)
        assert (own.advice.verdict, own.advice.recommended) == before[row.key]
        assert own.advice.measured == row.advice.measured
        assert own.advice.pick == row.advice.pick
    for kind in ("desk", "agent"):
        each = huge(kind, messages)
        create_and_add(each.id, each.policy, each.messages)
        services.keep(each.id)
    after = lab_page()
    assert {row.key: (row.advice.verdict, row.advice.recommended) for row in after.groups} == before
    assert "desk-huge" in after.card.measured_on


def test_a_row_agrees_with_its_page_and_a_huge_conversation_changes_no_pick(made):
    check_rows_and_a_huge_conversation(1_500)


@pytest.mark.long
def test_a_conversation_of_10_000_messages_changes_no_pick_of_the_whole_fleet(whole):
    check_rows_and_a_huge_conversation(10_000)


def test_the_file_and_the_database_agree(made, tmp_path, capsys):
    write(tmp_path, EACH)
    prices = ("--provider", "openai", "--input", "1", "--cached", "0.1", "--json")
    for kind, policy in POLICIES.items():
        asked = ("--policies", f"token_window:{policy.limit},everything", *prices)
        files = sorted(map(str, tmp_path.glob(f"{kind}-*.json")))
        call_command("recall", *files, "--today", f"token_window:{policy.limit}", *asked)
        of_files = list(map(json.loads, capsys.readouterr().out.splitlines()))
        call_command("recall", "--prefix", f"{kind}-", *asked)
        assert list(map(json.loads, capsys.readouterr().out.splitlines())) == of_files


@pytest.fixture
def long_for_the_bound(db, monkeypatch):
    """Two conversations of 42 messages, of which the newest 30 are measured."""
    for module in (
        "chatmemory.advice.recalls.MEASURED_MAX",
        "inspector.rooms.lab.figures.MEASURED_MAX",
        "inspector.rooms.lab.stored.MEASURED_MAX",
        "inspector.rooms.lab.writes.MEASURED_MAX",
        "inspector.rooms.simulation.comparison.MEASURED_MAX",
    ):
        monkeypatch.setattr(module, 30)
    made = [each for each in fleet(2) if each.id.startswith("agent-")]
    for each in made:
        create_and_add(each.id, each.policy, each.messages[:42])
        services.keep(each.id)
    return made


def test_a_long_conversation_is_measured_on_its_newest_messages_and_each_surface_says_so(
    long_for_the_bound, operator_client, api, tmp_path, capsys
):
    said = "the newest 30 of its 42 messages"
    compare = operator_client.get("/c/agent-00/compare/")
    lab = operator_client.get(lab_page(prefix="agent-00").address.link())
    assert said in words(compare.content)
    assert "the newest 30 of the 42 messages of 1 conversation" in words(lab.content)
    assert said in evidence_of(operator_client, "agent-00")
    both = operator_client.get(lab_page(prefix="agent-").address.link())
    assert "Of 2 long conversations, only the newest messages were measured: 60 of all 84" in words(
        both.content
    )
    counted = {"messages": 30, "said": 42, "in_part": 1}
    query = urlencode({"prefix": "agent-00", "policies": "everything", **PRICES})
    for answer in (
        api.get(f"/api/v1/recall/?{query}").json(),
        answer_json("recall", EVERYTHING, prefix="agent-00", **PRICES),
    ):
        assert answer["measured"].items() >= counted.items()
        assert "the newest 30 of the 42 messages of 1 conversation" in answer["why"]
    write(tmp_path, 2)
    for each in long_for_the_bound:
        path = tmp_path / f"{each.id}.json"
        path.write_text(json.dumps(json.loads(path.read_text())[:42]))
        limit = f"token_window:{each.policy.limit}"
        prices = ("--provider", "openai", "--input", "1", "--cached", "0.1", "--json")
        prices = ("--policies", f"{limit},everything", *prices)
        call_command("recall", str(path), "--today", limit, *prices)
        of_file = capsys.readouterr().out
        call_command("recall", "--prefix", each.id, *prices)
        assert capsys.readouterr().out == of_file
        assert "the newest 30 of the 42 messages" in of_file


@pytest.fixture
def of_clients(db):
    """Two windows that are lists of their clients, one with a limit that only measures; OpenAI
    refuses both.
    """
    choose_providers("", ["openai"])
    services.set_default_policy("client-metered", MessageWindow(4))
    (agent,) = (each for each in fleet(1) if each.id.startswith("agent"))
    system, *rest = agent.messages
    for memory_id in ("client-metered", "client-own"):
        protocol.update_messages(memory_id, [system, result("gone"), *rest])
        services.keep(memory_id)
    return {id: conversations.memory(id).last_step for id in ("client-metered", "client-own")}


def test_what_a_client_decides_has_no_verb_on_any_surface(of_clients, operator_client, api):
    for memory_id in of_clients:
        asked = f"/api/v1/recall/?{urlencode({'prefix': memory_id, **PRICES})}"
        answer = api.get(f"{asked}&policies=everything").json()
        (policy,) = policies_from_text(answer["recommended"])
        assert answer["verdict"] == "client"
        lab = lab_page(prefix=memory_id)
        pages = ("", "compare/", f"compare/?policy={text_of_policy(policy)}&policy=everything")
        for url in (*(f"/c/{memory_id}/{rest}" for rest in pages), lab.address.link()):
            page = operator_client.get(url)
            assert not offered(page.text), url
            said = words(page.content)
            assert "Only your client can" in said, url
            assert url.endswith(f"/c/{memory_id}/") or answer["recommended"] in said, url
        written = evidence_of(operator_client, memory_id)
        assert "Only your client can change what memory holds" in written
        for url in (f"/c/{memory_id}/", "/doctor/", "/doctor/?provider=openai"):
            assert f"/c/{memory_id}/repair/" not in operator_client.get(url).text, url
        repair = operator_client.get(f"/c/{memory_id}/repair/?provider=openai")
        assert "Only your client can fix this problem" in words(repair.content)
        assert "btn--primary" not in repair.text
    doctor = operator_client.get("/doctor/")
    assert "Only your client can fix this problem" in words(doctor.content)
    assert "[1] tool result" in words(doctor.content)


def test_what_a_client_decides_is_neither_adopted_nor_repaired(of_clients, operator_client):
    for memory_id in of_clients:
        sent = {"policy": "message_window:9", "confirmed": "yes"}
        adopted = operator_client.post(f"/c/{memory_id}/adopt/", sent)
        assert (adopted.status_code, "Only your client" in adopted.text) == (422, True)
        operator_client.post(f"/c/{memory_id}/repair/", {"provider": "openai", "version": 1})
    for url in ("/doctor/repair/", "/doctor/raise/", "/lab/fix/"):
        operator_client.post(url, {"rule": "orphan_result"})
        operator_client.post(url, {"rule": "orphan_result", "confirmed": "1", "versions": "{}"})
    operator_client.post("/lab/adopt/", sent | {"prefix": "client-"})
    assert {id: conversations.memory(id).last_step for id in of_clients} == of_clients
