"""The index of exact terms on the page: its row, its marks in history and tape, and its cost."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import Group

from chatmemory import AiMessage, SystemMessage, TokenWindow, UserMessage, services
from chatmemory.models import Message, Stay, Step
from chatmemory.reading import windows
from chatmemory.roles import GROUPS, Role

from ..conversations import create_and_add

SAME = "left at the same time"
LONG = "and some more words that fill the window " * 3
CITIES = ("Paris", "Rome", "Oslo", "Wien", "Bern", "Graz", "Linz", "Lyon", "Nice", "Pisa")


def said(*texts: str) -> list[UserMessage]:
    return [UserMessage(f"{each} {LONG}") for each in texts]


def number_of(id: str, n: int) -> int:
    """Return the seq of the nth message that was said."""
    rows = Message.objects.filter(memory_id=id, origin=Message.Origin.SAID).order_by("seq")
    return rows.values_list("seq", flat=True)[n - 1]


def said_until_it_left(id: str) -> dict[int, int]:
    """Return how many messages had been said when each one left, by its number among them."""
    rows = Message.objects.filter(memory_id=id, origin=Message.Origin.SAID).order_by("seq")
    numbers = {seq: n for n, seq in enumerate(rows.values_list("seq", flat=True), 1)}
    ended = Stay.objects.filter(memory_id=id, seq__in=numbers).exclude(left_step=None)
    steps = {step.n: step.said_count for step in Step.objects.filter(memory_id=id)}
    return {numbers[stay.seq]: steps[stay.left_step] for stay in ended}


def begin(*texts: str, terms: int = 50, id: str = "m") -> None:
    policy = TokenWindow(190, low_water=0.4, index_terms=terms)
    create_and_add(id, policy, [SystemMessage("Be brief."), *said(*texts)])


@pytest.fixture
def page(db, operator_client):
    def get(address: str = "/c/m/") -> str:
        return " ".join(operator_client.get(address).content.decode().split())

    return get


def part(html: str, beginning: str, end: str) -> str:
    return html[html.index(beginning) :].split(end)[0]


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_its_row_has_each_term_with_a_link_and_is_a_part_of_the_budget(page):
    begin("order: A-1182", "flight: HAT001", "A-1182 again", *CITIES)
    row = part(page("/c/m/?msg=2"), '<li class="led led--index', "</li>")
    assert words(row).startswith("index order: A-1182 #4 · flight: HAT001 #3")
    assert 'href="/c/m/?msg=3"' in row
    chosen = re.findall(r'<a [^>]*class="is-sel">([^<]*)', row)
    assert [each.strip() for each in chosen] == ["A-1182"]  # which #2 said, too
    left = windows.window("m").rows[1]
    assert "2 exact terms of" in words(row)
    assert f'<span class="led__tok">{left.tokens} tok</span>' in row
    html = page()
    assert re.search(rf'title="{left.tokens} tok"> .{{0,200}}Index <b>', html)
    assert f'id="kept-{left.seq}"' not in html


def test_history_and_tape_mark_the_messages_whose_terms_it_names(page):
    begin("order: A-1182", *CITIES)
    html = page()
    row = part(html, '<li class="said r-user is-out', "</li>")
    assert "is-indexed" in row
    assert "its terms are in the index" in words(row)
    assert 'order: <mark class="kept">A-1182</mark>' in row
    assert "above, the model sees only the index" in html
    assert html.count("is-indexed") == 2  # the row, and the cell of its step
    assert "terms in the index" in part(html, 'id="cells-2"', "</li>")


def test_a_renewed_index_has_not_left(page):
    begin("order: A-1182", *CITIES)
    renewed = Step.objects.filter(kind="index").order_by("n").last()
    html = page(f"/c/m/?at={renewed.n}")
    assert "Messages that left memory" not in html
    assert "made the index. A verification" in html
    assert "Messages that left memory" in page(f"/c/m/?at={renewed.n - 1}")


def test_the_terms_that_it_does_not_list_are_told(page):
    begin("order: A-1182", "flight: HAT001", *CITIES, terms=1)
    assert "1 exact term" in page()
    assert "1 more term not listed" in page()
    seq = next(row.seq for row in windows.window("m").rows[1:] if row.pinned)
    assert "1 more term not listed" in page(f"/c/m/?msg={seq}")


def test_a_memory_without_an_exact_term_says_so(page):
    begin(*CITIES)
    assert "No index: there is no exact term to list, or no room for the index." in page()
    begin("Paris", id="n")
    assert "no exact term to list" not in page("/c/n/")


def test_its_cost_is_told(page):
    begin("order: A-1182", *CITIES)
    cost = part(page("/c/m/?msg=2"), "What the index costs", "</div>")
    tokens = windows.window("m").rows[1].tokens
    assert f"{tokens} tok, {round(tokens / 1.9)} % of the limit" in words(cost)


def test_a_redacted_term_is_masked(page):
    begin("order: A-1182", *CITIES)
    services.redact("m", 2)
    html = page()
    assert "A-1182" not in html
    assert "[redacted #2] #2" in words(part(html, '<li class="led led--index', "</li>"))


def test_the_api_counts_its_tokens_apart(db, operator_client):
    begin("order: A-1182", *CITIES)
    budget = operator_client.get("/api/v1/memories/m/messages/").json()["budget"]
    assert budget["index"] == windows.window("m").rows[1].tokens
    assert budget["summaries"] == 0
    assert budget["used"] == sum(budget[each] for each in budget if each not in ("used", "limit"))


def test_an_answer_of_the_assistant_is_no_index(page):
    begin("order: A-1182", *CITIES)
    services.add("m", [AiMessage("[Exact terms of earlier messages that are no longer shown]")])
    assert page().count('class="led led--index') == 1


def test_rows_stand_in_the_order_of_the_window(page):
    begin("order: A-1182", "flight: HAT001", "A-1182 again", *CITIES[:2])
    services.pin("m", windows.window("m").rows[-1].seq)
    services.add("m", said(*CITIES[2:]))
    window = windows.window("m")
    assert sum(row.pinned for row in window.rows) == 2  # the index counts as pinned
    memory = part(page(), 'id="memory-head"', 'id="over-limit"')
    shown = re.findall(r'<li class="led [^"]*" id="(?:pinned|kept|index)-(\d+)"', memory)
    assert [int(seq) for seq in shown] == window.seqs


def test_a_term_is_left_out_after_a_preview_and_listed_again(page, operator_client):
    begin("order: A-1182", "flight: HAT001", *CITIES)
    card = part(page("/c/m/?msg=2"), 'data-id="index-cost"', "</div>")
    (address,) = re.findall(r'href="([^"]+)">\s*Leave A-1182 out…', card)
    before = windows.window("m").rows[1]
    preview = words(page(address))
    assert "Leave A-1182 out of the index" in preview
    assert f"tokens instead of {before.tokens}" in preview
    assert windows.window("m").rows[1] == before
    assert operator_client.post(address).url == "/c/m/?msg=2"
    html = page("/c/m/?msg=2")
    assert "A-1182" not in words(part(html, '<li class="led led--index', "</li>"))
    assert "Terms left out: A-1182." in words(html)
    (again,) = re.findall(r'href="([^"]+)">\s*List A-1182 again…', html)
    assert "List A-1182 again" in words(page(again))
    operator_client.post(again)
    assert "A-1182" in words(part(page(), '<li class="led led--index', "</li>"))


def test_the_last_term_takes_the_index_along(page, operator_client):
    begin("order: A-1182", *CITIES)
    (address,) = re.findall(r'href="([^"]+)">\s*Leave A-1182 out…', page("/c/m/?msg=2"))
    assert "would leave memory" in words(page(address))
    operator_client.post(address)
    assert "No index: there is no exact term to list" in page()
    assert "does not list this term" in words(page(address))


def test_terms_are_left_out_of_the_index_in_memory_only(page, client, django_user_model):
    begin("order: A-1182", *CITIES)
    assert "Leave A-1182 out…" in words(page("/c/m/?msg=2"))
    steps = Step.objects.latest("n").n
    assert "Leave A-1182 out…" not in words(page(f"/c/m/?msg=2&at={steps}"))
    viewer = django_user_model.objects.create_user("vera")
    viewer.groups.add(Group.objects.get(name=GROUPS[Role.VIEWER]))
    client.force_login(viewer)
    seen = words(client.get("/c/m/?msg=2").content.decode())
    assert "What the index costs" in seen
    assert "Leave A-1182 out…" not in seen


@pytest.mark.parametrize("place", ["1/1", "99/1", "{}/0", "{}/9"])
def test_other_places_have_no_term(page, operator_client, place):
    begin("order: A-1182", *CITIES)
    address = f"/c/m/index/{place.format(windows.window('m').rows[1].seq)}/"
    assert operator_client.get(address).status_code == 404
    assert operator_client.post(address).status_code == 404


def without_index(html: str, seq: int) -> str:
    row = part(html, f"#{seq} without an index", "</tr>")
    return words(row.split("</th>")[1])


def test_the_card_says_when_the_message_would_have_left_without_an_index(page):
    begin("order: A-1182", *(f"order: B-70{n:02} {city}" for n, city in enumerate(CITIES)))
    history, plain = "m", TokenWindow(190, low_water=0.4)
    create_and_add(history + "2", plain, [SystemMessage("Be brief.")])
    texts = ["order: A-1182", *(f"order: B-70{n:02} {city}" for n, city in enumerate(CITIES))]
    services.add("m2", said(*texts))
    left = {id: said_until_it_left(id) for id in ("m", "m2")}
    found = set()
    for n in sorted(left["m"]):
        card = page(f"/c/m/?msg={number_of('m', n)}")
        if " without an index</th>" not in card:
            continue
        words_there = without_index(card, number_of("m", n))
        later = left["m2"].get(n, 0) - left["m"][n]
        expected = f"left {later} message{'s' * (later > 1)} later" if later else SAME
        assert words_there == (expected if n in left["m2"] else "has not left yet")
        found.add(words_there)
    assert len(found) > 1


def test_after_other_changes_the_history_does_not_tell_when(page):
    begin("order: A-1182", *CITIES)
    assert "#2 without an index" in page("/c/m/?msg=2")
    services.pin("m", windows.window("m").rows[-1].seq)
    assert "#2 without an index" not in page("/c/m/?msg=2")
