"""Take the screenshots of the documentation from a running server: `make screenshots`.

`python -m docs.images.take compaction compact` takes these two only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.chromium import chromium, launch
from tests.serving import Served, served_by

FOLDER = Path(__file__).parent
DESK = {"viewport": {"width": 1440, "height": 900}}
HIGH_DESK = {"viewport": {"width": 1440, "height": 960}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2}
DARK = {"color_scheme": "dark"}
LOST_ORDER = "/c/order-7741/?at=43"

# Conversations in addition to the demo: the policy, and the number of messages.
FLEET = {
    "support-5518": ({"kind": "message_window", "max_messages": 20}, 33),
    "onboarding-114": ({"kind": "token_window", "max_tokens": 4000}, 40),
    "returns-2093": ({"kind": "token_window", "max_tokens": 300}, 27),
    "order-7698": ({"kind": "token_window", "max_tokens": 1000}, 14),
    "warranty-0391": ({"kind": "message_window", "max_messages": 20}, 40),
    "shipping-4027": ({"kind": "token_window", "max_tokens": 250}, 36),
}
LINES = [
    "It still says device offline on the second hub.",
    "Thank you. Let me look at that for you.",
    "The zip broke after one wash, can I still send it back?",
    "Of course. You have thirty days, and the label is in your mail.",
    "I attached the photos of the handle.",
    "That should not happen. A new one leaves tomorrow.",
    "Great, which plan includes the audit log?",
    "Team and above. Would you like to try it for two weeks?",
    "Here is my address again.",
    "Merci, c’est parfait.",
]
DRAFTS = [
    "Here is your mail of Friday: the parcel is on its way, and should be here tomorrow, it says.",
    "And can I still change the address?",
]
# Conversations whose policies have options, and what is said in each of them.
OPTIONS: dict[str, dict[str, object]] = {
    "policy-blocks": {"low_water": "0.5"},
    "policy-turns": {"snap_to_user": True},
    "policy-oversized": {"oversized": "reject"},
    "policy-pins": {},
}
# A session of a coding agent, which is compacted before its last messages.
SESSION, SESSION_BEFORE = "fix-2041", "fix-2041-before"
SUMMARY = (
    "The user wants the retry of uploads to stop after a while. The agent read the uploader and "
    "its tests, found that the delay has no upper bound, and set one. One test still fails."
)
OVERSIZED = "Here is the full export of my account, line by line. " * 12


def fill(served: Served) -> None:
    served.manage("load_demo")
    for (memory_id, (policy, count)), first in zip(FLEET.items(), cycle(range(len(LINES)))):
        turns = islice(cycle(LINES), first, first + count)
        say(served, memory_id, policy, [turn(n, text) for n, text in enumerate(turns)])
    function = {"name": "track", "arguments": '{"parcels": 4}'}
    call = {"id": "t1", "type": "function", "function": function}
    unanswered = [{"role": "assistant", "tool_calls": [call]}, turn(0, "Any news of the parcels?")]
    say(served, "shipping-4027", None, unanswered)
    small = {"kind": "token_window", "max_tokens": 60}
    say(served, "billing-8830", small, [turn(0, OVERSIZED)])
    for memory_id, options in OPTIONS.items():
        say(served, memory_id, {"kind": "token_window", "max_tokens": 120, **options}, ORDER[:6])
    pin = f"{served.url}/api/v1/memories/policy-pins/messages/1/pin/"
    served.api.post(pin).raise_for_status()
    for memory_id in OPTIONS:
        say(served, memory_id, None, ORDER[6:])
    small = {"kind": "token_window", "max_tokens": 400}
    for memory_id in (SESSION, SESSION_BEFORE):
        say(served, memory_id, small, SAID_BEFORE)
    body = {"summary": SUMMARY, "keep_last": 1, "trigger": "auto"}
    compact = f"{served.url}/api/v1/memories/{SESSION}/compact/"
    served.api.post(compact, json=body).raise_for_status()
    say(served, SESSION, None, SAID_AFTER)


def refused(page: Page) -> None:
    page.get_by_role("textbox", name="Message").fill(OVERSIZED)
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("the message is oversized").first.wait_for()


def turn(n: int, text: str) -> dict[str, str]:
    return {"role": "assistant" if n % 2 else "user", "content": text}


ORDER = [
    turn(n, text)
    for n, text in enumerate(
        [
            "My order number is A-1182, where is my parcel?",
            "It left the depot in Dijon this morning.",
            "Can I change the address?",
            "Yes, until tomorrow at noon. What is the new one?",
            "12 Rue de la Paix, Lyon.",
            "Thank you, I have changed it.",
            "And the phone number?",
            "That stays the same unless you tell me another.",
            "06 12 34 56 78",
            "Noted.",
            "Great. When will it come?",
            "On Thursday between nine and noon.",
        ]
    )
]


def called(id: str, command: str, output: str) -> list[object]:
    function = {"name": "run", "arguments": json.dumps({"command": command})}
    call = {"id": id, "type": "function", "function": function}
    return [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": output},
    ]


SAID_BEFORE: list[object] = [
    {"role": "system", "content": "You are a coding agent in the repository northkiln/shop."},
    turn(0, "Uploads retry for ever since 2.14.0, see SHOP-2041. Stop after 90 seconds, please."),
    *called("r1", "rg -n retry src/", "src/upload/retry2.py:41: def delays():"),
    *called("r2", "sed -n 35,60p src/upload/retry2.py", "41: def delays():\n42:     n = 0.25"),
    turn(1, "delays() in src/upload/retry2.py doubles without an upper bound. I set one."),
    *called("r3", "git commit -m SHOP-2041", "[main 9f3c2ab] SHOP-2041"),
    *called("r4", "pytest -q tests/upload", "FAILED tests/upload/test_s3.py::test_429"),
    turn(1, "One test fails: tests/upload/test_s3.py::test_429. I look at it next."),
    turn(0, "Good. Which branch is that on?"),
]
SAID_AFTER: list[object] = [
    turn(1, "It is on main."),
    turn(0, "Mention the issue in the changelog, and repair the test."),
    *called("r5", "git log -1 --format=%s", "SHOP-2041"),
    *called("r6", "rg -l 429 tests/", "tests/upload/test_s3.py"),
    turn(1, "tests/upload/test_s3.py passes, and the changelog names SHOP-2041."),
]


def say(served: Served, memory_id: str, policy: object, messages: list[object]) -> None:
    memories = f"{served.url}/api/v1/memories/"
    if policy:
        served.api.post(memories, json={"id": memory_id, "policy": policy}).raise_for_status()
    body = {"messages": messages, "format": "openai_chat"}
    served.api.post(f"{memories}{memory_id}/messages/", json=body).raise_for_status()


def preview(page: Page) -> None:
    for text in DRAFTS:
        page.get_by_role("textbox", name="Message").fill(text)
        with page.expect_response("**/simulate/"):
            page.get_by_role("button", name="Preview").click()
        page.locator(".led.is-draft").filter(has_text=text[:30]).wait_for()


def summarise(page: Page) -> None:
    page.get_by_role("textbox", name="Summary").fill(SUMMARY)
    page.get_by_label("The last message that it covers").fill("12")
    page.get_by_label("Append exact terms").select_option("25")
    page.get_by_role("button", name="Preview").click()
    page.get_by_text("would become one summary").wait_for()


def make_token(page: Page) -> None:
    page.get_by_label("Name").fill("support-bot")
    page.get_by_label("Only conversation IDs that begin with").fill("acme/")
    page.get_by_label("Days until the token expires").fill("90")
    page.get_by_role("button", name="Create a token").click()
    page.get_by_text("Copy it now").wait_for()


def nothing(page: Page) -> None:
    """Take the page as it opens."""


PICTURES: list[tuple[str, str, dict[str, object], Callable[[Page], None]]] = [
    ("overview-dark", "/", DESK | DARK, nothing),
    ("conversation", f"{LOST_ORDER}&msg=25", DESK, nothing),
    ("conversation-dark", "/c/order-7741/?msg=40", DESK | DARK, nothing),
    ("remembers", f"{LOST_ORDER}&find=A-1182", DESK, nothing),
    ("simulation", "/c/order-7741/?at=42", DESK, preview),
    ("phone", f"{LOST_ORDER}&find=A-1182", PHONE, nothing),
    ("import", "/import/", DESK, nothing),
    ("policy-blocks", "/c/policy-blocks/?at=9&msg=4", DESK, nothing),
    ("policy-turns", "/c/policy-turns/?at=9&msg=2", DESK, nothing),
    ("policy-oversized", "/c/policy-oversized/", DESK, refused),
    ("policy-pins", "/c/policy-pins/?msg=1", DESK, nothing),
    ("compaction", f"/c/{SESSION}/?at=14", DESK, nothing),
    ("compact", f"/c/{SESSION_BEFORE}/compact/", HIGH_DESK, summarise),
    ("tokens", "/tokens/", DESK, make_token),
    ("lesson", "/learn/tool-calls/?step=2&leaves=3&leaves=4&check=1", DESK, nothing),
]


def take(served: Served, browser: Browser, names: Collection[str]) -> None:
    for name, path, options, do in PICTURES:
        if names and name not in names:
            continue
        context = browser.new_context(**options)
        page = context.new_page()
        page.goto(served.sign_in_link())
        page.goto(served.url + path)
        page.evaluate("document.fonts.ready")
        do(page)
        page.mouse.move(0, 0)
        page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")
        context.close()


def main() -> None:
    path = chromium()
    if not path:
        raise SystemExit(
            "Chromium not found: apt-get install chromium-headless-shell, or set CHROMIUM to a path"
        )
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        database = f"sqlite:///{folder}/pictures.sqlite3"
        with served_by(database, Path(folder)) as served, launch(playwright, path) as browser:
            fill(served)
            take(served, browser, sys.argv[1:])


if __name__ == "__main__":
    main()
