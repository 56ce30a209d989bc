"""The tape: its geometry, without a browser, and its drawing of a ledger."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatmemory import MessageWindow, TokenWindow, services
from chatmemory.models import Memory
from chatmemory.reading.steps import BLOCK, OUTLINE, PART, outline_of, part_around, step_samples
from chatmemory.stores.database import DjangoChatMemoryStore
from inspector.conversation.page import ConversationPage
from inspector.conversation.state import conversation_state
from inspector.conversation.timeline.chart import Chart, Point, short_number
from inspector.conversation.timeline.labels import (
    MARGIN,
    NARROW,
    WIDE,
    axis,
    flag_width,
    strip_width,
)
from inspector.conversation.timeline.strip import Cell, strip_labels
from inspector.shell.state import ConversationQuery

from ..conversations import create_and_add, numbered, users

SIZES = [1, 2, 3, 9, 10, 11, 58, 99, 118, 120, 121, 400, 999, 1_000, 10_000, 99_999, 100_000]


def strip_at(steps: int, at: int) -> list[Cell]:
    """The cells around a step of a conversation whose memory holds the last ten."""
    return [
        Cell(
            step=n,
            seq=n,
            glyph="system" if n == 1 else "user",
            css="is-later" if n > at else "is-in" if n == 1 or n > at - 10 else "is-out",
            words="",
        )
        for n in part_around(steps, at)
    ]


def some_steps(steps: int) -> set[int]:
    return {at for n in range(0, steps + 1, max(1, steps // 97)) for at in (n, n + 1)} & set(
        range(steps + 1)
    )


def touching(spans: list[tuple[float, float]]) -> list[tuple[tuple[float, float], ...]]:
    ordered = sorted(spans)
    return [(a, b) for a, b in pairwise(ordered) if b[0] < a[1] + 4]


@pytest.mark.parametrize("steps", SIZES)
def test_labels_of_the_strip_touch_neither_each_other_nor_the_flag(steps):
    for at in some_steps(steps):
        strip = strip_at(steps, at)
        flag = f"{at:,}"
        labels = strip_labels(strip, at, flag)
        least = strip_width(len(strip))
        for width in (least, least + 300, 4 * WIDE):
            place = width * max(at - strip[0].step + 1, 0) / len(strip)
            half = flag_width(flag) / 2
            spans = [label.span(width) for label in labels]
            assert all(a >= -MARGIN and b <= width + MARGIN for a, b in spans)
            assert not touching([*spans, (place - half, place + half)]), (steps, at, width)
        if at == steps // 2 > 100:
            assert {"window", "not said yet", "left memory"} <= {label.text for label in labels}


@pytest.mark.parametrize("steps", SIZES)
def test_labels_of_the_axis_do_not_touch(steps):
    labels = axis(steps)
    assert not touching([label.span(WIDE) for label in labels])
    assert not touching([label.span(NARROW) for label in labels if label.css != "wide"])


@pytest.mark.parametrize("steps", SIZES)
def test_the_strip_has_the_steps_around_the_playhead_and_rarely_moves(steps):
    for at in some_steps(steps) - {0}:
        part = part_around(steps, at)
        assert at in part
        assert len(part) == min(steps, PART)
        assert 1 <= part[0] <= part[-1] <= steps
    starts = [part_around(steps, at).start for at in range(1, min(steps, 10_000) + 1)]
    assert sum(a != b for a, b in pairwise(starts)) <= steps / BLOCK
    assert starts == sorted(starts)


@pytest.mark.parametrize("steps", [size for size in SIZES if size > PART])
def test_the_overview_is_linear_in_steps(steps):
    numbers = [0, *outline_of(steps)]
    gaps = {b - a for a, b in pairwise(numbers)}
    assert numbers[-1] == steps
    assert len(numbers) <= OUTLINE + 1
    assert max(gaps) - min(gaps) <= 1


def heights(path: str) -> list[int]:
    """The heights of a path of relative lines, from its first."""
    first = re.search(r"V(-?\d+)h", path)
    at = int(first[1]) if first else 0
    found = [at]
    for step in re.findall(r"v(-?\d+)", path):
        at += int(step)
        found.append(at)
    return found


def point(step: int, said: int, memory: int, limit: int | None = None, forgotten: int = 0) -> Point:
    return Point(step, said, memory, limit, forgotten)


def test_a_limit_far_above_is_named_at_the_edge_and_does_not_flatten_the_chart():
    drawn = Chart([point(1, 900, 900, 128_000)], limit=128_000)
    assert drawn.limits == ""
    assert [label.text for label in drawn.labels] == ["900", "limit 128k ↑", "0"]
    assert heights(drawn.history) == [0]


def test_the_limit_line_follows_the_policy_in_force():
    points = [point(1, 5, 5, 10), point(2, 8, 8, 10), point(3, 8, 8, 4), point(4, 9, 4, None)]
    assert Chart(points, limit=4).limits == "M0 0H2M2 120H3"


@pytest.mark.parametrize("said", [100, 100_000])
def test_labels_beside_the_chart_do_not_touch(said):
    for limit in [*range(1, 120), 500, 10_000, None]:
        drawn = Chart([point(1, said, 100, limit)], limit)
        places = [label.y for label in drawn.labels]
        assert all(b - a >= 23.9 for a, b in pairwise(places)), limit
        assert places[0] >= 12
        assert places[-1] <= 88


def test_memory_has_an_axis_of_its_own_where_much_more_was_said():
    few, many = ([point(1, 60, 60, 70), point(2, said, 70, 70)] for said in (349, 350))
    shared, split = Chart(few, 70), Chart(many, 70)
    assert not shared.is_split
    assert [label.text for label in shared.labels] == ["350", "limit 70"]
    assert split.is_split
    assert [label.text for label in split.labels] == ["said 350", "limit 70", "0"]
    assert (heights(split.history), split.base) == ([54, 0], 64)
    assert split.history.endswith("V64z")
    assert (heights(split.memory), split.limits) == ([98, 80], "M0 80H2")


def test_the_axis_of_memory_is_labelled_where_its_limit_is_not_at_its_top():
    assert [label.text for label in Chart([point(1, 9_000, 100, 30)], 30).labels] == [
        *("said 9,000", "memory 100", "limit 30"),
    ]
    assert [label.text for label in Chart([point(1, 9_000, 100)], None).labels] == [
        *("said 9,000", "memory 100", "0"),
    ]
    assert [label.text for label in Chart([point(1, 9_000, 100, 128_000)], 128_000).labels] == [
        *("said 9,000", "memory 100", "limit 128k ↑"),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 5_000)), min_size=1, max_size=9),
    st.integers(1, 9_999),
)
def test_memory_is_read_beside_its_limit_and_is_never_flat(loads, limit):
    """History and memory have one axis, or two that do not overlap."""
    loads = [(max(said, memory), memory) for said, memory in loads]
    points = [point(n, *both, limit) for n, both in enumerate([*loads, (limit, limit)], 1)]
    drawn = Chart(points, limit)
    of_memory = heights(drawn.memory)
    assert f"M0 {of_memory[-1]}H" in drawn.limits, "memory at its limit touches the line"
    assert all(drawn.base % 200 < y <= 200 for y in of_memory) or not drawn.is_split
    assert all(0 <= y <= drawn.base for y in heights(drawn.history))
    assert 200 - min(of_memory) >= 36
    if not drawn.is_split:
        assert heights(drawn.history)[-1] == of_memory[-1], "equal loads are equally high"


def test_a_draft_is_on_the_axis_of_the_history(operator_client, db):
    create_and_add("c", MessageWindow(2), numbered(30))
    key = services.keep_trial("c", numbered(1, "draft"))
    html = operator_client.get(f"/c/c/?trial={key}").content.decode()
    assert re.search(r'class="c-said" d="M30 64V0h1V64z"', html)
    assert re.search(r'class="c-draft" d="M30 200V80h1V200z"', html)
    assert "Said and in memory after each step, in msg, each with an axis of its own" in html


def test_evictions_are_as_deep_as_there_are_many():
    points = [point(10, 1, 1, None, 0), point(20, 2, 1, None, 4), point(30, 3, 1, None, 5)]
    assert Chart(points, None).evictions == "M0 200v0h10v24h10v-18h10V200z"


def test_long_numbers_are_short():
    assert [short_number(n) for n in (9_999, 12_500, 128_000, 1_050_000)] == [
        "9,999",
        "12.5k",
        "128k",
        "1.05M",
    ]


# On a ledger


def timeline(memory_id: str, at: int | None = None):
    return ConversationPage(conversation_state(memory_id, ConversationQuery(at=at))).timeline


@pytest.fixture
def store(db) -> DjangoChatMemoryStore:
    """A store whose client sends whole lists."""
    return DjangoChatMemoryStore()


def test_a_step_with_several_messages_says_how_many(store):
    store.update_messages("c", numbered(12))
    store.update_messages("c", numbered(13)[10:])
    first, second = timeline("c").cells
    assert (first.mark, first.words) == ("12", "#1 to #12: 12 messages, 2 in memory")
    assert "is-many" in first.css
    assert (second.seq, second.mark) == (13, "")


def test_a_step_without_a_message_is_a_tick(db):
    create_and_add("c", MessageWindow(9), users("a"))
    services.change("c", policy=MessageWindow(5))
    services.clear_messages("c")
    assert [(cell.words, "is-tick" in cell.css) for cell in timeline("c").cells] == [
        ("#1 User, left memory at step 3", False),
        ("Step 2: the policy changed", True),
        ("Step 3: memory was cleared", True),
    ]


def test_a_message_is_forgotten_when_it_left_last(store):
    for words in ("a", "ab", "b", "ab", "c"):
        store.update_messages("c", users(*words))
    assert timeline("c").cells[0].words.endswith("left memory at step 5")
    create_and_add("counted anew", TokenWindow(100, estimator="gpt-4o"), users("a"))
    services.change("counted anew", policy=TokenWindow(100, estimator="gpt-4"))
    services.clear_messages("counted anew")
    assert timeline("counted anew").cells[0].words.endswith("left memory at step 3")
    assert timeline("counted anew", at=2).cells[0].words.endswith("in memory")


def test_a_limit_of_another_unit_is_not_drawn(db):
    create_and_add("c", MessageWindow(9), users("said"))
    services.change("c", policy=TokenWindow(5))
    assert re.fullmatch(r"M1 \d+H2", timeline("c").chart.limits)


@pytest.fixture
def long(db) -> str:
    services.import_conversation(
        "order-7741",
        numbered(400, "where is my parcel"),
        TokenWindow(200),
    )
    return "order-7741"


def test_what_steps_around_have_in_common_is_read_once(long, django_assert_num_queries):
    memory = Memory.objects.get(pk=long)
    with django_assert_num_queries(3):
        samples = step_samples(memory, 200)
    with django_assert_num_queries(0):
        assert step_samples(memory, 198).outline is samples.outline
    assert [sample.step for sample in samples.part] == list(part_around(400, 200))
    assert [sample.seqs for sample in samples.part[:2]] == [range(111, 112), range(112, 113)]
    assert list(samples.outline)[-1] == 400


def test_a_long_tape_is_small(long, operator_client):
    """Without the ids by which the script tells the cells apart."""
    html = operator_client.get(f"/c/{long}/?at=200").content.decode()
    tape = html[html.index('<section class="tape"') :]
    drawn = re.sub(r' id="cells-\d+"', "", tape[: tape.index("</section>")])
    assert len(drawn.encode()) < 25_000


def test_cells_of_a_refused_draft_lead_back_to_the_conversation(long, operator_client):
    form = {"role": "user", "text": "", "limit": "none", "at": "200"}
    response = operator_client.post(f"/c/{long}/simulate/", form)
    assert response.status_code == 422
    links = re.findall(r'id="cells-\d+"[^>]*><a href="([^"]*)"', response.content.decode())
    assert len(links) == PART
    assert all(link.startswith(f"/c/{long}/?") for link in links)


def test_the_band_tells_its_steps_in_words(db):
    create_and_add("c", MessageWindow(2), users("order A-1", "b", "c", "A-1 again", "d"))
    state = conversation_state("c", ConversationQuery(room_parameters={"find": "A-1"}))
    drawn = ConversationPage(state).timeline
    assert (drawn.band, drawn.band_words) == (
        "M0 2H2M3 2H5",
        "Phrase in memory at steps 1 to 2 and 4 to 5",
    )
