"""The health of a window is kept up to date without reading the window, and is what lint says."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatmemory import (
    AiMessage,
    ChatMemoryError,
    ChatMessage,
    CustomMessage,
    Image,
    ImageContent,
    MessageWindow,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    services,
)
from chatmemory.core.lint import PROVIDERS, Finding
from chatmemory.ledger.health import BITS, KEPT, SHORT
from chatmemory.ledger.verification import verify
from chatmemory.linting import lint
from chatmemory.models import Memory
from chatmemory.services import protocol

from ..conversations import CALL, RESULT
from ..properties import examples
from .test_any_changes import change, changes, create, undone
from .test_any_changes import messages as plain_messages

pytestmark = pytest.mark.database

ids = st.sampled_from(["a", "b", "c", None])
arguments = st.sampled_from(["{}", "{}", "[]", "{"])
requests = st.builds(ToolExecutionRequest, ids, st.just("find"), arguments)
messages = st.one_of(
    plain_messages,
    st.builds(UserMessage, st.sampled_from(["hi", "hi", " "])),
    st.builds(AiMessage, st.sampled_from(["hi", "", None])),
    st.builds(lambda each: AiMessage("see", each), st.lists(requests, min_size=1, max_size=3)),
    st.builds(lambda call: ToolExecutionResultMessage(call, "find", "found"), ids),
    st.just(UserMessage([ImageContent(Image(base64_data="AAAA", mime_type="image/tiff"))])),
)
lists = st.lists(messages, max_size=6)
adds = st.tuples(st.just("add"), lists)
repairs = st.tuples(st.just("repair"), st.sampled_from(list(PROVIDERS)))
all_changes = st.one_of(adds, adds, adds, changes, st.tuples(st.just("set"), lists), repairs)
# A second result of an answered call, far from it, counts as one without its call
SAME = {"duplicate_result": "orphan_result"}


def expected(memory_id: str) -> set[tuple[str, str, str]]:
    """What lint says of the stored window: rules, severities and providers."""
    rows = protocol.get_messages(memory_id)
    memory = Memory.objects.get(pk=memory_id)
    said = [each for each in rows if each.type != "CUSTOM"]
    found = {
        (SAME.get(each.rule, each.rule), each.severity, provider)
        for provider in PROVIDERS
        for each in [*lint(rows, provider=provider), *empty(rows, provider)]
        if each.rule in KEPT and not each.message.endswith("is waiting for its results.")
    }
    is_short = not any(each.type == "USER" for each in said)
    if memory.last_seq > memory.window_count and is_short:
        found |= {(SHORT, "", "")} if any(each.type != "SYSTEM" for each in said) else set()
    return found


def empty(rows: list[ChatMessage], provider: str) -> list[Finding]:
    """What is empty, also an answer at the end that Anthropic takes until something follows."""
    found = lint([*rows, UserMessage("next")], provider=provider)
    return [each for each in found if each.rule == "empty_content"]


def kept(memory_id: str) -> set[tuple[str, str, str]]:
    found = set()
    for rule, refused, mishandled, *_ in Memory.objects.get(pk=memory_id).health.get("faults", ()):
        rule = SAME.get(rule, rule)
        found |= {(rule, "refused", name) for name, bit in BITS.items() if bit & refused}
        found |= {(rule, "mishandled", name) for name, bit in BITS.items() if bit & mishandled}
        found |= {(rule, "", "")} if rule == SHORT else set()
    return found


APART = [CALL, CustomMessage({"a": 1}), RESULT, UserMessage("a"), UserMessage("a")]
BETWEEN = [AiMessage("a"), SystemMessage("b"), AiMessage("a"), SystemMessage("a")]


@examples(100)
@given(st.lists(all_changes, max_size=12))
@example([("add", BETWEEN)])
@example([("add", APART)])
def test_after_any_changes_health_is_what_lint_says(db, made):
    with undone():
        create()
        for kind, value in made:
            try:
                services.repair("m", value) if kind == "repair" else change(kind, value)
            except ChatMemoryError:
                continue
            assert kept("m") == expected("m"), protocol.get_messages("m")
        assert verify("m") is None


def test_a_fault_that_left_is_not_where_the_next_one_began(db):
    services.create("m", MessageWindow(2))
    first, second = (ToolExecutionResultMessage(id, "find", "found") for id in ("a", "b"))
    services.add("m", [UserMessage("1"), first, *(UserMessage(f"{n}") for n in (3, 4, 5)), second])
    assert Memory.objects.get(pk="m").health["ill_step"] == 6
