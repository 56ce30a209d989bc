"""The lab of many conversations: slices, words of the page, groups, and adopting the advice."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatmemory import AiMessage, MessageWindow, SystemMessage, TokenWindow, UserMessage, services
from chatmemory.explain import wording
from chatmemory.formats import read_transcripts
from chatmemory.ledger import protocol
from chatmemory.models import Memory, Message, Step
from chatmemory.reading.conversations import policy
from chatmemory.reading.finding import MemoryFilter
from chatmemory.reading.overview import all_memories
from inspector.rooms.lab import adoption, reads, writes
from inspector.rooms.lab.addresses import FleetAddress
from inspector.rooms.lab.models import Figures
from inspector.shell.files import csv_file
from tests.conversations import create_and_add, keep, numbered
from tests.images import made_once
from tests.inspector.markup import tree, words

SAID = [
    UserMessage("Orders A-1182 and B-2231."),
    AiMessage("Yes?"),
    UserMessage("Hm"),
    AiMessage("A-1182, B-2231"),
    AiMessage("Well"),
]
COUNT = 6
MESSAGES = "kind=message_window"
TWO = MessageWindow(2)


@made_once
def conversations():
    for n in range(COUNT):
        create_and_add(f"shop/{n}", TWO, SAID, {"team": "ab"[n % 2]})


@pytest.fixture
def lab(operator_client, conversations):
    """The page after everything was computed, as text without markup."""
    return lambda query=MESSAGES: computed(operator_client, query)


def compute(query: str) -> None:
    while writes.compute_figures(address_of(query).query, 60):
        pass


def computed(client, query: str = "") -> str:
    compute(query)
    return words(client.get(f"/lab/?{query}").content)


def address_of(query: str = MESSAGES) -> FleetAddress:
    given = QueryDict(query).dict()
    return FleetAddress.read(given).with_usual_kind(given)


def table(client, query: str, caption: str = "Policies") -> dict[str, list[str]]:
    """The cells of each row of a table, by its label."""
    page = tree(client.get(f"/lab/?{query}").content.decode())
    (found,) = [
        each for each in page.findall(".//div[@role='group']") if caption in each.get("aria-label")
    ]
    rows = (
        [" ".join(" ".join(cell.itertext()).split()) for cell in row]
        for row in found.findall(".//tbody/tr")
    )
    return {label: cells for label, *cells in rows}


def words_of(cell) -> list[str]:
    return " ".join(cell.itertext()).split()


@made_once
def airline(data_file):
    """Forty support conversations under 2,000 tokens, with their figures, which take seconds."""
    read = read_transcripts(data_file("tau_bench_airline.openai_chat.json").read_bytes())
    found = read.transcripts[:40]
    list(services.import_all(replace(read, transcripts=found), TokenWindow(2_000), "air-"))
    compute("input=2.5")


def labels(chart) -> list:
    """The labels of points, which are placed to be read."""
    return [each for each in chart.findall("text") if each.get("dy") is None][1:]


def crossed_labels(chart) -> list[str]:
    """The labels that a line of the chart runs through."""
    lines = [each.get("d") for each in chart.findall("path") if " " in each.get("d", "")]
    points = [[tuple(map(float, at.split())) for at in d[1:].split("L")] for d in lines if "L" in d]
    on_lines = [
        (x + share / 99 * (to_x - x), y + share / 99 * (to_y - y))
        for line in points
        for (x, y), (to_x, to_y) in pairwise(line)
        for share in range(100)
    ]
    found = []
    for each in labels(chart):
        x, y, text = float(each.get("x")), float(each.get("y")), "".join(each.itertext())
        width = 6 * len(text)
        left = x - {"start": 0, "middle": width / 2, "end": width}[each.get("text-anchor")]
        if any(left < px < left + width and y - 9 < py < y for px, py in on_lines):
            found.append(text)
    return found


def test_sending_everything_is_suggested_where_a_window_saves_nothing(operator_client, airline):
    """Without a price of cached input, tokens are compared."""
    text = computed(operator_client, "input=2.5")
    assert re.search(r"Keeping today’s policies costs \d+ % more than sending everything", text)
    assert "costs 10 % less than sending everything in each half" in text
    assert "Measured on " in text
    html = operator_client.get("/lab/?input=2.5").text
    assert 'name="policy" value="everything"' in html
    wide, tablet, phone = tree(html).findall(".//div[@class='bill__plot']//svg[@role='img']")
    assert [crossed_labels(wide), crossed_labels(tablet)] == [[], []]
    assert "today" in " ".join("".join(each.itertext()) for each in labels(phone))
    preview = operator_client.post("/lab/adopt/", {"input": "2.5", "policy": "everything"}).text
    assert "After the change, no message leaves memory: the limit only measures." in preview
    assert re.search(r"\d+ → (\d+) of \1", preview), "the facts"
    assert re.search(r"1\.\d\d → 1\.00", preview), "the cost"
    rows = table(operator_client, "input=2.5")
    assert rows["Everything suggested"][-2] == "1.00"
    held, *_, cost, money = rows["2,000 tokens your policy today"]
    assert int(held.removesuffix(" %")) < 95
    assert float(cost) > 1
    assert money.startswith("$")
    text = computed(operator_client, "provider=own")
    assert "in tokens, because no price of cached input is chosen" in text
    assert float(table(operator_client, "provider=own")["2,000 tokens your policy today"][-1]) < 1
    cached = table(operator_client, "provider=own&input=2.5&cached=0.25")
    assert float(cached["2,000 tokens your policy today"][-2]) > 1
    small = computed(operator_client, "provider=own&input=2.5&cached=0.25&context=3000")
    assert "No limit within the model’s context window holds 95 %" in small


def long_session(n: int) -> list:
    """A session that does not need its old words again: a window in blocks saves most of it."""
    said = [SystemMessage("Be kind."), UserMessage(f"The order is A-{n}182.")]
    for turn in range(30):
        said += [UserMessage(f"B-{n}{turn} " + "and then " * 100), AiMessage(f"B-{n}{turn} done")]
    return said


def test_a_window_in_blocks_is_suggested_where_it_saves(operator_client, db):
    for n in range(4, 8):
        create_and_add(f"long-{n}", TokenWindow(1_500), long_session(n))
    text = computed(operator_client, "provider=own&input=2.5&cached=0.25")
    assert re.search("Set the limit to .* trimmed to .* when full", text)
    assert "Measured on 4 conversations, each with the same weight" in text
    assert re.search(
        r"It also saves in each half of the conversations: relative cost 0\.\d\d and", text
    )
    assert "Preview the change" in text


def needing_again(n: int) -> list:
    """A conversation whose first order and flight are needed after they left."""
    filler = [AiMessage(f"City {each} " + "and more words that fill it " * 3) for each in range(9)]
    first = [UserMessage(f"order: A-{n}182"), UserMessage(f"flight: HAT00{n}")]
    return [*first, *filler, AiMessage(f"A-{n}182 is on its way, and HAT00{n} is late.")]


def test_facts_that_an_index_names_have_a_column_of_their_own(operator_client, db):
    policy = TokenWindow(190, low_water=0.4, index_terms=50)
    for n in range(4):
        create_and_add(f"indexed-{n}", policy, needing_again(n))
    text = computed(operator_client, "provider=own&input=1&cached=0.1")
    assert "Lost facts in the index" in text
    rows = table(operator_client, "provider=own&input=1&cached=0.1")
    yours = next(cells for label, cells in rows.items() if "your policy today" in label)
    assert yours[:3] == ["0 %", "8", "8"]  # held, lost, and named of the lost ones
    everything = next(cells for label, cells in rows.items() if label.startswith("Everything"))
    assert everything[:3] == ["100 %", "0", ""]


def test_a_table_of_policies_without_an_index_has_no_column_for_it(lab):
    assert "Lost facts in the index" not in lab()


def test_groups_have_an_advice_of_their_own(operator_client, db, airline):
    for n in range(4):
        create_and_add(f"long-{n}", TokenWindow(1_500), long_session(n), {"team": "agents"})
    query = "provider=own&input=2.5&cached=0.25"
    text = computed(operator_client, query)
    groups = table(operator_client, query, "Groups")
    assert list(groups) == ["air- beginning of IDs", "team:agents label"]
    count, _, today, suggested, held, _, cost, _ = groups["team:agents label"]
    assert (count, today) == ("4", "1,500 tokens")
    assert "trimmed to" in suggested
    before, after = cost.split(" → ")
    assert float(after) < float(before)
    least, most = held.split(" → ")
    assert int(most) >= int(least)
    assert groups["air- beginning of IDs"][1].count("·") == 1
    assert "Find better limits" in text


def test_a_branch_is_in_the_group_of_its_labels_and_id_and_makes_none(
    operator_client, conversations
):
    """A branch has a label of the step at which it began."""
    create_and_add("desk-1", TWO, SAID, {"from": "the desk"})
    services.branch("shop/0", "shop/branch", [], at=3)
    services.branch("shop/1", "shop/other", [], at=4)
    services.change("shop/other", labels={"from": "step 4", "team": "b"})
    computed(operator_client, MESSAGES)
    groups = table(operator_client, MESSAGES, "Groups")
    assert {name: row[0] for name, row in groups.items()} == {
        "team:b label": "3 of 4",
        "team:a label": "3",
        "from:the desk label": "1",
        "shop/ beginning of IDs": "0 of 1",
    }


def test_a_group_whose_policy_costs_least_keeps_it(operator_client, db, data_file):
    """Another one is cheaper in the conversation by which it is chosen, and dearer in both."""
    data = data_file("glaive_toolcall.sharegpt.json").read_bytes()
    data = data.replace(b"point1", b"PT-101").replace(
        b"point2", b"PT-102"
    )  # counted words are none
    read = read_transcripts(data)
    first, second = (read.transcripts[n] for n in (28, 106))
    asked = UserMessage("How far is it from PT-101 to PT-102?")
    found = [first, replace(second, messages=[asked, *second.messages[1:]])]
    list(services.import_all(replace(read, transcripts=found), MessageWindow(4), "glaive-"))
    create_and_add("other", MessageWindow(9), SAID)
    computed(operator_client, MESSAGES)
    row = table(operator_client, MESSAGES, "Groups")["glaive- beginning of IDs"]
    _, _, today, suggested, held, incidents, cost, preview = row
    assert (today, suggested) == ("4 messages", "keep today’s policy")
    assert len({*held.split(" → ")}) == len({*incidents.split(" → ")}) == 1
    assert len({*cost.split(" → ")}) == 1
    assert preview == ""


def test_a_fix_for_all_is_previewed_and_changes_each_group(operator_client, db):
    for n in range(4):
        create_and_add(f"long-{n}", TokenWindow(1_500), long_session(n), {"team": "agents"})
        create_and_add(f"other-{n}", TokenWindow(1_200), long_session(n + 5))
    form = {"provider": "own", "input": "2.5", "cached": "0.25"}
    computed(operator_client, "provider=own&input=2.5&cached=0.25")
    preview = words(operator_client.post("/lab/fix/", form).content)
    assert "team:agents 4 conversations: 1,500 tokens →" in preview
    assert "Facts in memory when needed again" in preview
    assert re.search(r"Cost, relative to sending everything \d\.\d\d → \d\.\d\d", preview)
    one = words(operator_client.post("/lab/fix/", {**form, "group": "other-"}).content)
    assert "other- 4 conversations" in one
    assert "team:agents" not in one
    assert policy("long-0") == TokenWindow(1_500)
    chosen = {**form, "group": ["team:agents"], "confirmed": "1"}
    answer = operator_client.post("/lab/fix/", chosen)
    assert answer.status_code == 302
    assert policy("long-0") != TokenWindow(1_500)
    assert {policy(f"other-{n}").limit for n in range(4)} == {1_200}
    assert Step.objects.filter(kind=Step.Kind.POLICY).count() == 4


def test_sending_everything_can_be_adopted_for_a_group(operator_client, db):
    """As their own limits, which then only measure."""
    session = [each for n in range(4) for each in long_session(n)[2:8]]
    for n in range(4):
        create_and_add(f"long-{n}", TokenWindow(1_500), long_session(n))
        create_and_add(f"bot-{n}", TokenWindow(500 + 100 * n), [*SAID, *session, *SAID])
    computed(operator_client)
    assert "Everything" in table(operator_client, "", "Groups")["bot- beginning of IDs"][3]
    assert "Preview bot-" in operator_client.get("/lab/").text
    form = {"group": "bot-"}
    assert "the limit only measures." in words(operator_client.post("/lab/fix/", form).content)
    assert operator_client.post("/lab/fix/", form | {"confirmed": "1"}).status_code == 302
    limits = [TokenWindow(500 + 100 * n).metering() for n in range(4)]
    assert [policy(f"bot-{n}") for n in range(4)] == limits
    assert policy("long-0") == TokenWindow(1_500)


def test_outliers_and_conversations_that_clients_decide_are_left_out(operator_client, db):
    """One agent's session does not move the advice for bots that need far less."""
    for n in range(12):
        create_and_add(f"bot-{n}", TokenWindow(60), SAID)
    text = computed(operator_client)
    usual = table(operator_client, "")
    session = [UserMessage("C-9000"), *[UserMessage("and then " * 300)] * 9, AiMessage("C-9000")]
    create_and_add("bot-agent", TokenWindow(90_000), [*session, *[AiMessage("C-9000")] * 2])
    protocol.update_messages("client-1", session)
    text = computed(operator_client)
    assert "1 far larger than the others (bot-agent)" in text
    assert "1 whose client decides what memory holds" in text
    assert table(operator_client, "") == usual
    alone = computed(operator_client, "q=C-9000")
    assert "Measured on 1 conversation" in alone


def test_figures_are_kept_until_the_conversation_changes(conversations):
    query = address_of().query
    assert writes.compute_figures(query, 60) == 0
    services.add("shop/1", [AiMessage("A-1182 again")])
    assert len(reads.fleet(query).known) == COUNT - 1
    assert writes.compute_figures(query, 0) == 0
    known = [each.measured.figures for each in reads.fleet(query).known]
    assert sum(each.recalls for each in known) == 2 * COUNT + 1
    for other in (f"{MESSAGES}&estimator=gpt-4", f"{MESSAGES}&provider=gemini"):
        assert writes.compute_figures(address_of(other).query, 0) == COUNT - 1
    assert writes.compute_figures(address_of(f"{MESSAGES}&input=5&cached=1").query, 0) == 0


def test_figures_go_with_a_redaction_and_with_the_conversation(conversations, monkeypatch):
    writes.compute_figures(address_of(f"{MESSAGES}&limit=3").query, 60)
    services.redact("shop/1", 1)
    assert not Figures.objects.filter(memory_id="shop/1").exists()
    services.delete("shop/2")
    monkeypatch.setattr("chatmemory.ledger.erasure.AT_ONCE", 0)
    services.delete("shop/3")
    assert Figures.objects.count() == COUNT - 3


def test_a_conversation_that_changes_while_it_is_computed_is_left_out(conversations, monkeypatch):
    compute = writes.figures_of

    def meanwhile(*arguments):
        services.add("shop/0", [UserMessage("one more")])
        monkeypatch.setattr(writes, "figures_of", compute)
        return compute(*arguments)

    monkeypatch.setattr(writes, "figures_of", meanwhile)
    writes.compute_figures(address_of(f"{MESSAGES}&limit=3").query, 60)
    assert set(Figures.objects.values_list("memory_id", flat=True)) == {
        f"shop/{n}" for n in range(1, COUNT)
    }


def test_csv_has_the_frontier(operator_client, lab):
    lab()
    text = operator_client.get(f"/lab/?{MESSAGES}&as=csv").content.decode()
    rows = {row["policy"]: row for row in csv.DictReader(io.StringIO(text))}
    assert rows["everything"]["relative_cost"] == "1.0"
    assert "message_window:2" not in rows, "it has no room for the largest turn"
    assert rows["message_window:3"]["held"] == "12"
    assert "message_window:4,low_water=0.8" in rows


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("options=bogus=1", "no option"),
        ("options=low_water=0.5&limit=5", ""),
        ("options=meters_only=true", "A policy with meters_only loses no message at any limit"),
        ("since=2026-13-40", "A date must be written like 2026-01-31."),
        ("estimator=nobody", "nobody"),
        ("kind=nothing", "The kind of a policy must be message_window or token_window"),
        ("sample=ten", "Sample must be a whole number with at most 9 digits"),
        ("limit=0", "The limit must be greater than zero"),
        ("cached=1000000", "The cached price must be a number below 1,000,000, such as 2.50"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_sent_or_adopted(
    operator_client, conversations, query, words
):
    adopted = operator_client.post(
        "/lab/adopt/", {"limit": "777", **QueryDict(query).dict(), "confirmed": "1"}
    )
    if words:
        assert adopted.status_code == 422
        assert {row.policy for row in all_memories(MemoryFilter())} == {TWO}
        page = operator_client.get(f"/lab/?{query}")
        assert words in page.content.decode()
        numbers = operator_client.get(f"/lab/?{query}&as=csv")
        assert numbers["Content-Type"] == "text/plain; charset=utf-8"
        assert (page.status_code, numbers.status_code) == (422, 422)


def test_nothing_used_again_is_said_and_no_limit_is_offered(operator_client, db):
    create_and_add("m", TWO, [*SAID[:3], AiMessage("Well"), UserMessage("It was that")])
    text = computed(operator_client)
    assert "No advice: fewer than three model calls" in text
    assert "Preview the change" not in text
    assert "Lost most" not in text


def test_few_facts_are_too_few_to_choose_by(operator_client, db):
    create_and_add("m", TWO, SAID)
    assert "Only 2 facts were needed again: too few to compare limits by facts." in computed(
        operator_client
    )


def test_a_group_whose_limit_only_measures_sends_everything_today(operator_client, conversations):
    for n in range(COUNT):
        services.change(f"shop/{n}", policy=replace(TWO, meters_only=True))
    computed(operator_client, MESSAGES)
    groups = table(operator_client, MESSAGES, "Groups")
    assert [row[2] for row in groups.values()] == ["Everything", "Everything"]


def test_without_a_fact_cost_decides_alone(operator_client, db):
    create_and_add("m", TWO, [each for n in numbered(4) for each in (n, AiMessage("Fine."))])
    page = computed(operator_client)
    assert "No fact was needed again, so limits are compared by cost alone." in page
    assert "Lost most" not in page


def test_without_any_conversation_it_leads_to_where_they_come_in(operator_client, db):
    text = words(operator_client.get("/lab/").content)
    assert "There are no conversations yet. Add conversations" in text
    assert "No conversation matches. Choose all" in words(
        operator_client.get("/lab/?prefix=shop/").content
    )


def test_a_limit_that_is_asked_for_has_a_row(operator_client, lab):
    lab(f"{MESSAGES}&limit=3")
    rows = table(operator_client, f"{MESSAGES}&limit=3")
    assert rows["3 messages chosen limit"][:2] == ["100 %", "0"]


def test_old_questions_and_all_but_the_newest_are_forgotten(conversations, monkeypatch):
    monkeypatch.setattr(writes, "QUESTIONS_KEPT", 2)
    for limit in (5, 6, 7):
        writes.compute_figures(address_of(f"{MESSAGES}&limit={limit}").query, 60)
    keys = Figures.objects.values_list("key", flat=True).distinct()
    assert len(keys) == 3, "two, and the newest beside them"
    assert writes.compute_figures(address_of(f"{MESSAGES}&limit=7").query, 60) == 0
    Figures.objects.update(computed_at=timezone.now() - timedelta(days=31))
    writes.compute_figures(address_of(f"{MESSAGES}&limit=8").query, 0)
    assert Figures.objects.count() == 1
    Figures.objects.update(computed_at=timezone.now() - timedelta(days=31))
    writes.forget_old_figures()
    assert not Figures.objects.exists()


@pytest.mark.database
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite locks the whole file")
def test_conversations_are_locked_one_by_one(conversations):
    """Citus cannot lock rows of several conversations with one statement."""
    for n in range(COUNT):
        services.keep(f"shop/{n}")
    with CaptureQueriesContext(connection) as sent:
        writes.compute_figures(address_of().query, 60)
    locks = [each["sql"] for each in sent if "FOR UPDATE" in each["sql"]]
    assert len(locks) == COUNT
    assert not [sql for sql in locks if " IN (" in sql]


def test_all_and_nothing_are_said_of_no_other_share():
    shares = [wording.percent(part, 1_588) for part in (0, 1, 1_500, 1_587, 1_588)]
    assert shares == ["0 %", "1 %", "94 %", "99 %", "100 %"]
    assert wording.percent(0, 0) == ""


def test_it_is_computed_slice_by_slice(operator_client, conversations):
    assert writes.compute_figures(address_of("kind=token_window").query, 0) == COUNT - 1
    tokens = {"kind": "token_window"}
    assert f"1 of {COUNT} conversations" in operator_client.get("/lab/", tokens).text
    answer = operator_client.post("/lab/", tokens, headers={"HX-Request": "true"})
    assert b"hold" in answer.content
    assert operator_client.post("/lab/", tokens)["Location"] == "/lab/?kind=token_window"
    assert "<progress" not in operator_client.get("/lab/", tokens).text


def test_it_opens_in_the_unit_of_most_conversations(operator_client, db):
    create_and_add("m", TWO, SAID)
    page = operator_client.get("/lab/").context["address"]
    assert (page.kind, page.parameters) == ("message_window", {})
    page = operator_client.get("/lab/?kind=token_window").context["address"]
    assert (page.kind, page.parameters) == ("token_window", {"kind": "token_window"})


def test_the_lab_counts_unreadable_conversations(lab):
    Message.objects.filter(memory_id__in=["shop/1", "shop/2"], seq=1).update(frame="{")
    assert "Conversations not counted: 2 unreadable." in lab()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("label=team:a", "3 conversations with the label team:a"),
        ("prefix=shop/1", "1 conversation with IDs that begin with shop/1"),
        ("q=A-1182", "6 conversations that match “A-1182”"),
        ("sample=2&seed=7", "a sample of 2 of 6 conversations of this site"),
        ("since=2999-01-01", "No conversation matches."),
        ("kind=nothing&limit=x&sample=-1", "6 conversations of this site"),
    ],
)
def test_conversations_are_chosen(operator_client, conversations, query, words):
    html = operator_client.get(f"/lab/?{query}").content.decode()
    assert words in " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_a_sample_is_drawn_by_its_seed(conversations):
    drawn = [
        tuple(each.id for each in reads.chosen_of(address_of(f"sample=3&seed={seed}").query)[1])
        for seed in (1, 1, *range(2, 9))
    ]
    assert drawn[0] == drawn[1]
    assert {len(each) for each in drawn} == {3}
    assert len({*drawn}) > 2


def test_a_limit_is_adopted_for_a_label_after_a_preview(operator_client, conversations):
    form = {"kind": "message_window", "limit": "3", "label": "team:a"}
    preview = operator_client.post("/lab/adopt/", form).content.decode()
    assert "Change the policy of 3 conversations to Message window 3?" in preview
    assert policy("shop/0") == TWO
    answer = operator_client.post("/lab/adopt/", form | {"confirmed": "1"})
    assert "label=team%3Aa" in answer["Location"]
    assert [policy(f"shop/{n}").limit for n in range(4)] == [3, 2, 3, 2]
    assert Step.objects.filter(kind=Step.Kind.POLICY).count() == 3
    operator_client.post("/lab/adopt/", form | {"confirmed": "1"})
    assert Step.objects.filter(kind=Step.Kind.POLICY).count() == 3


def test_the_lab_has_the_conversations_of_a_flag(operator_client, db):
    create_and_add("over", MessageWindow(4), SAID)
    services.change("over", policy=TWO)
    create_and_add("fits", MessageWindow(9), SAID)
    html = operator_client.get(f"/lab/?{MESSAGES}&flagged=over_limit").content.decode()
    assert "1 conversation flagged “Over the limit”" in words(html.encode())
    assert 'name="flagged"' in html
    assert operator_client.get("/lab/?flagged=nonsense").status_code == 422
    form = {"kind": "message_window", "limit": "4", "flagged": "over_limit", "confirmed": "1"}
    operator_client.post("/lab/adopt/", form)
    assert [policy(id).limit for id in ("over", "fits")] == [4, 9]


def test_a_limit_for_users_who_repeated_themselves_ends_that(operator_client, db):
    """A limit that is cheaper, holds 95 % and leaves the repetition is suggested to others only."""
    for n in range(2):
        early = [UserMessage(f"My order is A-{n}182."), *long_session(n)[1:]]
        create_and_add(f"m{n}", TokenWindow(1_500), [*early, UserMessage(f"A-{n}182, as I said.")])
    keep()
    query = "provider=own&input=2.5&cached=0.25"
    computed(operator_client, query)
    (suggested,) = (row for name, row in table(operator_client, query).items() if "sugg" in name)
    assert suggested[2] == "2"
    computed(operator_client, f"{query}&flagged=user_repeated")
    rows = table(operator_client, f"{query}&flagged=user_repeated")
    (suggested,) = (row for name, row in rows.items() if "suggested" in name)
    assert suggested[2] == "0"


@pytest.fixture
def of_clients(conversations):
    """Two conversations whose windows are lists of their clients: one has a limit that measures."""
    services.set_default_policy("shop/metered", MessageWindow(4))
    for memory_id in ("shop/metered", "shop/client"):
        protocol.update_messages(memory_id, SAID)
        services.change(memory_id, labels={"team": "a"})
    return {id: policy(id) for id in ("shop/metered", "shop/client")}


def test_conversations_that_clients_decide_are_left_out_of_an_adoption(operator_client, of_clients):
    form = {"kind": "message_window", "limit": "3", "label": "team:a"}
    preview = words(operator_client.post("/lab/adopt/", form).content)
    assert "Change the policy of 3 conversations to Message window 3?" in preview
    assert "2 conversations are left out, because a client decides what is in memory." in preview
    operator_client.post("/lab/adopt/", form | {"confirmed": "1"})
    assert {policy(f"shop/{n}") for n in (0, 2, 4)} == {MessageWindow(3)}
    assert {id: policy(id) for id in of_clients} == of_clients
    assert "left out" not in words(
        operator_client.post("/lab/adopt/", form | {"label": "team:b"}).content
    )


def test_conversations_that_clients_decide_are_left_out_of_a_fix_for_all(
    operator_client, of_clients
):
    computed(operator_client, MESSAGES)
    preview = words(operator_client.post("/lab/fix/", {"kind": "message_window"}).content)
    assert "2 conversations are left out, because a client decides what is in memory." in preview
    chosen = [*of_clients, *(f"shop/{n}" for n in range(COUNT))]
    assert writes.adopt(dict.fromkeys(chosen, MessageWindow(3)), seconds=60) == 0
    assert {policy(f"shop/{n}") for n in range(COUNT)} == {MessageWindow(3)}
    assert {id: policy(id) for id in of_clients} == of_clients


def test_one_that_only_measures_can_be_given_a_limit_again(operator_client, conversations):
    """Its messages are added, so that a limit has an effect."""
    services.adopt_policy(MemoryFilter(), TWO.metering())
    assert services.adopt_policy(MemoryFilter(), MessageWindow(3)) == COUNT


def test_many_conversations_change_in_slices(conversations):
    which = MemoryFilter()
    assert services.adopt_policy(which, TokenWindow(99), seconds=0) == 1
    assert adoption.adopting(which, TokenWindow(99)).differing == COUNT - 1
    assert services.adopt_policy(which, TokenWindow(99)) == COUNT - 1
    assert adoption.adopting(which, TokenWindow(1)).over == COUNT


@pytest.mark.parametrize("is_readable", [True, False])
def test_one_that_cannot_be_changed_stops_no_other(operator_client, conversations, is_readable):
    if is_readable:
        Memory.objects.filter(pk="shop/0").update(imported=1)
    else:
        Message.objects.filter(memory="shop/0", seq=4).update(frame="{")
    form = {"kind": "token_window", "limit": "99", "estimator": "gpt-4", "confirmed": "1"}
    page = operator_client.post("/lab/adopt/", form).content.decode()
    assert f"{COUNT - 1} conversations changed, 1 conversation left to change" in page
    page = operator_client.post("/lab/adopt/", form).content.decode()
    assert "1 conversation cannot be changed now" in page
    assert policy("shop/1") == TokenWindow(99, estimator="gpt-4")


def test_what_a_policy_would_change(conversations):
    which, limit = MemoryFilter(), MessageWindow(1)
    assert adoption.adopting(which, TWO).differing == 0
    for other in (MessageWindow(2, low_water=0.5), MessageWindow(2, estimator="gpt-4")):
        assert adoption.adopting(which, other).differing == COUNT
    assert adoption.adopting(which, limit).over == COUNT
    assert adoption.adopting(which, limit.metering()).over == 0, "it pushes nothing out"


def test_a_conversation_of_a_client_that_is_set_apart_is_not_counted(db):
    services.create("ours", MessageWindow(5))
    for name in ("apart", "theirs"):
        services.create(name, None)
    found = adoption.adopting(MemoryFilter(), TokenWindow(99), ["apart"])
    assert (found.matching, found.of_clients) == (1, 1)


def test_counts_of_another_estimator_are_not_forecast(operator_client, db):
    create_and_add("m", TokenWindow(245), [UserMessage("订单" * 20)] * 4)
    form = {"kind": "token_window", "limit": "245", "estimator": "gpt-4"}
    page = operator_client.post("/lab/adopt/", form).content.decode()
    assert "1 conversation gets another token estimator" in page
    assert "No message that is in memory now would leave" not in page


def test_without_a_limit_nothing_is_adopted(operator_client, db):
    assert operator_client.post("/lab/adopt/", {"confirmed": "1"})["Location"] == "/lab/"
    assert operator_client.get("/lab/adopt/").status_code == 405


def test_no_text_of_a_csv_is_taken_for_a_formula():
    texts = [f"{start}1+1" for start in "=+-@\t\uff1d\uff0b\uff0d\uff20"]
    content = csv_file(["name"], [{"name": text} for text in texts], "lab").content.decode()
    rows = csv.DictReader(io.StringIO(content))
    assert [row["name"] for row in rows] == [f"'{text}" for text in texts]


def test_why_of_an_eviction_says_what_it_bills_again(operator_client, db):
    create_and_add("m", MessageWindow(3), SAID)
    text = words(operator_client.get("/c/m/?at=4&msg=1").content)
    assert "Effect on the prompt cache This step freed" in text
    assert "left the shared prefix" in text
    assert "Effect on the prompt cache" not in words(
        operator_client.get("/c/m/?at=4&msg=3").content
    )
    create_and_add("one", MessageWindow(1), SAID)
    assert "Effect on the prompt cache" not in words(
        operator_client.get("/c/one/?at=2&msg=1").content
    )


def test_the_former_name_of_a_flag_chooses_the_same(operator_client, db):
    page = operator_client.get("/lab/?flagged=said_again")
    assert page.status_code == 200
    assert "flagged “Users repeated themselves”" in words(page.content)
