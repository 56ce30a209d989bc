"""The comparison of policies and the lab, in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from chatmemory import (
    AiMessage,
    MessageWindow,
    TokenWindow,
    UserMessage,
    queries,
    services,
)

from ..conversations import create_and_add

PHONE = {"viewport": {"width": 390, "height": 844}}
DESK = {"width": 1440, "height": 900}
LOST = "/c/m/compare/?policy=message_window:2&policy=everything&at=3&phrase=A-1182&input=2.5"


@pytest.fixture(autouse=True)
def _conversations(demo_conversations):
    services.create("m", MessageWindow(2))
    orders = "A-1182 " + " ".join(f"B-{n}" for n in range(100, 109))
    said = [
        f"My orders are {orders}.",
        "Thank you.",
        "They have not come.",
        f"I look for {orders}.",
    ]
    services.add("m", [(UserMessage, AiMessage)[n % 2](text) for n, text in enumerate(said)])


@pytest.mark.parametrize("javascript", [True, False])
def test_from_a_lost_order_number_to_the_limit_in_two_clicks(open_page, javascript):
    page = open_page("/c/m/", javascript=javascript)
    page.get_by_role("link", name="Compare").click()
    page.locator("#lost").get_by_role("link", name="A-1182").first.click()
    expect(page.locator(".lab__big")).to_have_text("3 messages still hold “A-1182” at #3.")
    page.get_by_role("link", name="One message on").click()
    expect(page.get_by_role("heading", name="Who is in memory after #4")).to_be_visible()
    page.get_by_role("button", name="Use this policy").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Use Message window 3 for m?")


def test_the_lab_computes_by_itself_and_adopts_a_limit(open_page):
    page = open_page("/lab/?kind=message_window&prefix=m")
    expect(page.locator(".lab__big")).to_contain_text("3 messages hold 100 %")
    expect(page.locator("progress")).to_have_count(0)
    page.get_by_role("link", name="3 msg").first.click()
    page.get_by_role("button", name="Preview the change").click()
    page.get_by_role("button", name="Use it").click()
    expect(page.locator(".is-today td").first).to_contain_text("3 msg")
    expect(page.locator(".lab__big")).to_contain_text("3 messages hold 100 %")


def test_the_lab_works_without_javascript(open_page):
    page = open_page("/lab/?kind=message_window", javascript=False)
    page.get_by_role("button", name="Compute").click()
    expect(page.locator(".lab__big")).to_contain_text("messages hold")
    page.get_by_role("spinbutton", name="Limit").fill("2")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".lab__big")).to_contain_text("2 messages hold")


def test_axe_finds_nothing_also_on_a_phone(
    open_page, live_server, violations, violations_in_both_schemes
):
    services.compute_figures(queries.FleetQuery(queries.MemoryFilter(), TokenWindow(10**9)), 60)
    page = open_page("/")

    def check() -> None:
        for size, find in (
            (DESK, violations_in_both_schemes),
            (PHONE["viewport"], violations),
        ):
            page.set_viewport_size(size)
            assert find(page) == [], (page.url, size)
            assert is_within(page), (page.url, size)
        page.set_viewport_size(DESK)

    for path in (LOST, "/c/order-7741/compare/?at=20", "/lab/?input=2.5"):
        page.goto(live_server.url + path)
        expect(page.locator(".lab__big")).to_be_visible()
        check()


# The labels on the chart of the lab that are shown and lie on another.
TOUCHING = """() => {
  const boxes = [...document.querySelectorAll(".lab__now text")]
    .filter(each => each.checkVisibility())
    .map(each => [each.textContent, each.getBoundingClientRect()]);
  return boxes.flatMap(([text, box], n) => boxes.slice(n + 1)
    .filter(([, other]) => box.left < other.right && other.left < box.right)
    .map(([other]) => [text, other]));
}"""


def test_no_label_of_a_limit_in_force_lies_on_another(open_page):
    for limit in (100, 300, 2_000):
        create_and_add(f"limits/{limit}", TokenWindow(limit), queries.said("order-7741"))
    query = queries.FleetQuery(queries.MemoryFilter(id_prefix="limits/"), TokenWindow(10**9))
    services.compute_figures(query, 60)
    page = open_page("/lab/?prefix=limits/")
    labels = page.locator(".lab__now text:visible")
    for width in (390, 760, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        expect(labels.first).to_contain_text("today 100")
        assert "300" in " ".join(labels.all_text_contents()), width
        assert page.evaluate(TOUCHING) == [], width
        assert is_within(page), width


# The fields of forms that stand above each other with less than four pixels between them.
CROWDED = """() => {
  const fields = [...document.querySelectorAll(".cmp__controls .field")]
    .filter(each => each.checkVisibility())
    .map(each => [each.closest("label").innerText, each.getBoundingClientRect()]);
  return fields.flatMap(([name, box]) => fields
    .filter(([, other]) => box.left < other.right && other.left < box.right)
    .filter(([, other]) => other.top > box.top && other.top < box.bottom + 4)
    .map(([other]) => [name, other]));
}"""


def test_no_field_touches_the_one_above_it(open_page):
    page = open_page("/lab/?input=2.5&prefix=m")
    for width in (390, 760, 1024, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        expect(page.get_by_label("Count tokens as")).to_be_visible()
        assert page.evaluate(CROWDED) == [], width


def is_within(page) -> bool:
    width = page.viewport_size["width"]
    return bool(page.evaluate("document.documentElement.scrollWidth") <= width)


def test_a_phone_shows_the_curve_before_the_form(open_page):
    page = open_page("/lab/", viewport={"width": 390, "height": 844})
    plot = page.locator(".lab__plot")
    expect(plot).to_be_visible()
    below = page.locator(".cmp__controls, .lab__file, .lab__table")
    foot = plot.bounding_box()["y"] + plot.bounding_box()["height"]
    assert all(each.bounding_box()["y"] >= foot for each in below.all())
