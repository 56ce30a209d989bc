"""A site with a conversation of each sort, and the states of its pages."""

from __future__ import annotations

from pathlib import Path

from chatmemory import (
    AiMessage,
    ImageContent,
    MessageWindow,
    SystemMessage,
    TextContent,
    TokenWindow,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.access.tokens import create_token
from chatmemory.formats import read_transcripts
from chatmemory.keeping import current
from chatmemory.ledger import protocol
from chatmemory.models import Memory
from inspector import demo
from inspector.rooms.transfer.imports import import_all

from ..rooms import room_modules
from .states import State

# Two runs of tau-bench's airline task, by Sierra, under the MIT license:
# https://github.com/sierra-research/tau-bench
RUNS = Path(__file__).parent / "tau_bench.json"


def build() -> dict[str, str]:
    """Store the conversations; return the keys of trials by the names that states have for them."""
    demo.load()
    list(import_all(read_transcripts(RUNS.read_bytes()), TokenWindow(1000), "tau-"))
    _the_client_decides()
    _a_limit_is_lowered()
    _support()
    _a_message_is_oversized()
    _a_summary_loses_terms()
    services.set_default_policy("shop/", TokenWindow(4000, low_water="0.6"), actor="operator")
    services.create("shop/empty")
    create_token("shop", role="viewer", prefix="shop/", days=7)
    drafts = [UserMessage("Is my favourite colour red?"), AiMessage("It is green.")]
    services.branch("classroom", "classroom-from-9", drafts, at=9, actor="operator")
    _examine()
    trials = {"drafts": (drafts, None), "limit": ([], 4), "both": (drafts, 5)}
    return {name: services.keep_trial("classroom", *trial) for name, trial in trials.items()}


def _examine() -> None:
    """Keep the doctor's diagnosis of each conversation, if the room is installed."""
    for keeper in services.keepers():
        if keeper.model._meta.app_label == "chatmemory_doctor":
            for memory_id in Memory.objects.order_by("id").values_list("id", flat=True):
                current(keeper, memory_id)


def _the_client_decides() -> None:
    said = [SystemMessage("Be brief."), *(UserMessage(f"message {n}") for n in range(4))]
    protocol.update_messages("client", said)
    protocol.update_messages("client", [said[0], UserMessage("A summary."), *said[3:]])


def _a_limit_is_lowered() -> None:
    services.create("lowered", MessageWindow(6), {"team": "support"})
    services.add("lowered", [UserMessage(f"question {n}") for n in range(8)])
    services.change("lowered", policy=MessageWindow(4), actor="operator")


def _support() -> None:
    """Tool calls, a picture, thinking, attributes, a pinned message and a redacted one."""
    services.create("support", MessageWindow(6), {"vip": "", "team": "support"})
    calls = [ToolExecutionRequest(str(n), "find_order", f'{{"part": {n}}}') for n in (1, 2)]
    services.add("support", [SystemMessage("Be kind."), UserMessage("My order is A-1182.")])
    services.pin("support", 2, actor="operator")
    services.add(
        "support",
        [
            UserMessage("My card ends in 4242."),
            AiMessage(None, calls, thinking="Both parts?", attributes={"model": "m-1"}),
            ToolExecutionResultMessage("1", "find_order", '{"depot": "Dijon"}'),
            ToolExecutionResultMessage("2", "find_order", '{"depot": "Lyon"}'),
            UserMessage([TextContent("Like this?"), ImageContent("https://example.org/a.png")]),
            AiMessage("Yes."),
        ],
    )
    services.redact("support", 3, actor="operator")


def _a_message_is_oversized() -> None:
    services.create("oversized", TokenWindow(40, oversized="keep"))
    services.add("oversized", [UserMessage("short"), UserMessage("far too long " * 30)])


def _a_summary_loses_terms() -> None:
    services.create("compacted", MessageWindow(20))
    said = [
        UserMessage("Fix ENT-1182 in cmd/cli/hooks2.go, for 3000 ms at most."),
        AiMessage(None, [ToolExecutionRequest("1", "git_log", "{}")]),
        ToolExecutionResultMessage("1", "git_log", "72a7142 v0.4.2-rc1"),
        AiMessage("The hook is at fault."),
    ]
    services.add("compacted", said)
    services.compact("compacted", "Fix hooks2.go.", keep_last=0, trigger="auto", actor="operator")
    services.add(
        "compacted",
        [
            UserMessage("It is ENT-1182."),
            AiMessage(None, [ToolExecutionRequest("2", "git_log", "{}")]),
            ToolExecutionResultMessage("2", "git_log", "72a7142"),
            AiMessage("72a7142 fixes ENT-1182 in cmd/cli/hooks2.go: 3000 ms, in v0.4.2-rc1."),
        ],
    )
    services.keep("compacted")


ORDER, CLASS, SUPPORT = "/c/order-7741/", "/c/classroom/", "/c/support/"
POLICIES = "policy=message_window:10&policy=token_window:400"

# They are read in this order from one site: what stores something comes last.
STATES = {
    "overview": State("/", whole=True),
    "overview-viewer": State("/", by="viewer", whole=True),
    "overview-searched": State("/?q=A-1182"),
    "overview-flagged": State("/?flagged=any&sort=fill"),
    "overview-now": State("/now/?id=order-7741&id=support", htmx=True),
    "order-start": State(f"{ORDER}?at=0"),
    "order-before-eviction": State(f"{ORDER}?at=42"),
    "order-eviction": State(f"{ORDER}?at=43"),
    "order-after-eviction": State(f"{ORDER}?at=44&msg=25"),
    "order-live": State(ORDER),
    "order-kept-message": State(f"{ORDER}?msg=50"),
    "order-phrase": State(f"{ORDER}?find=A-1182"),
    "class-viewer": State(f"{CLASS}?msg=3", by="viewer"),
    "class-step-fragment": State(f"{CLASS}?at=9&msg=2", htmx=True),
    "class-earlier-history": State(f"{CLASS}?before=9"),
    "class-phrase-earlier": State(f"{CLASS}?at=9&find=green"),
    "class-phrase-never-said": State(f"{CLASS}?find=walrus"),
    "class-compared-steps": State(f"{CLASS}?at=12&with=4"),
    "branch": State("/c/classroom-from-9/"),
    "system-messages": State("/c/lisbon-guide/"),
    "tau-live": State("/c/tau-38-1/"),
    "tau-evicted-result": State("/c/tau-18-2/?msg=6"),
    "client-decides": State("/c/client/?msg=2"),
    "lowered": State("/c/lowered/?msg=3"),
    "support-pinned": State(f"{SUPPORT}?msg=2"),
    "support-redacted": State(f"{SUPPORT}?msg=3"),
    "support-calls": State(f"{SUPPORT}?msg=4"),
    "support-picture": State(f"{SUPPORT}?msg=7"),
    "compacted-summary": State("/c/compacted/?msg=5"),
    "oversized": State("/c/oversized/?msg=2"),
    "empty": State("/c/shop~2Fempty/"),
    "missing": State("/c/nobody/"),
    "delete-asked": State("/bulk/", form={"action": "delete", "id": ["classroom", "support"]}),
    "sign-in": State("/sign-in/", by="stranger", whole=True),
}
STATES |= {name: state for each in room_modules("golden") for name, state in each.STATES.items()}
