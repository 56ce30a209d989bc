"""A program that uses every public name, as your own code would. mypy checks it strictly."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypedDict

import chatmemory as cm

ERRORS: tuple[type[cm.ChatMemoryError], ...] = ()
ERRORS += (cm.CorruptRow, cm.DuplicateClientId, cm.EstimatorUnavailable, cm.InvalidMessage)
ERRORS += (cm.InvalidValue, cm.MemoryExists, cm.MemoryNotFound, cm.MessageNotFound)
ERRORS += (cm.MessageTooLarge, cm.DeletionUnfinished, cm.ImportUnfinished, cm.PolicyRequired)
ERRORS += (cm.PolicyUnavailable, cm.StepNotFound, cm.UnknownEstimator)
ERRORS += (cm.UnreadableTranscript, cm.UnstorableText, cm.UnsupportedMessage)
ERRORS += (cm.VersionConflict, cm.WindowTooLarge)


class LettersEstimator:
    """One token for each character."""

    def estimate_token_count_in_text(self, text: str) -> int:
        return len(text)

    def estimate_token_count_in_message(self, message: cm.ChatMessage) -> int:
        return self.estimate_token_count_in_text(cm.text_of(message))

    def estimate_token_count_in_messages(self, messages: Iterable[cm.ChatMessage]) -> int:
        return sum(map(self.estimate_token_count_in_message, messages))


class FileStore(cm.ChatMemoryStore):
    """A store of your own: the JSON of each conversation in a file."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def get_messages(self, memory_id: str) -> list[cm.ChatMessage]:
        return cm.messages_from_json(self.files.get(memory_id), nulls=False)

    def update_messages(self, memory_id: str, messages: Sequence[cm.ChatMessage]) -> None:
        self.files[memory_id] = cm.messages_to_json(messages)

    def delete_messages(self, memory_id: str) -> None:
        self.files.pop(memory_id, None)


class LastTwo(cm.ChatMemory):
    """A memory of your own kind."""

    def __init__(self, id: str, store: cm.ChatMemoryStore | None = None) -> None:
        super().__init__(id, 2, store)

    def policy(self) -> cm.Policy:
        return cm.MessageWindow(self.current_limit())


def conversation() -> list[cm.ChatMessage]:
    contents: list[cm.Content] = [
        cm.TextContent("What do you see and hear?"),
        cm.ImageContent("https://example.org/a.png"),
        cm.ImageContent(cm.Image("https://example.org/a.png"), cm.DetailLevel.HIGH),
        cm.AudioContent(cm.Audio(base64_data="AAAA", mime_type="audio/wav")),
        cm.VideoContent(cm.Video("https://example.org/a.mp4")),
        cm.PdfFileContent(cm.PdfFile("https://example.org/a.pdf")),
    ]
    call = cm.ToolExecutionRequest.of("find_order", {"order": "A-1182"}, id="1")
    return [
        cm.SystemMessage("Be brief."),
        cm.UserMessage(contents, name="Ada"),
        cm.AiMessage("Let me look.", [call]),
        cm.ToolExecutionResultMessage("1", "find_order", "shipped"),
        cm.CustomMessage({"seen": True}),
        cm.UserMessage("Thank you."),
    ]


def windows() -> list[cm.ChatMemory]:
    estimator: cm.TokenCountEstimator = LettersEstimator()
    memories: list[cm.ChatMemory] = [
        cm.MessageWindowChatMemory("a", 3),
        cm.MessageWindowChatMemory("a", lambda memory_id: len(memory_id) + 2, FileStore()),
        cm.TokenWindowChatMemory("a", 50, cm.OpenAiTokenCountEstimator("gpt-4o")),
        cm.TokenWindowChatMemory("a", 50, estimator, cm.InMemoryChatMemoryStore()),
        cm.TurnWindowChatMemory("a", 3),
        LastTwo("a", cm.SingleSlotChatMemoryStore("a")),
    ]
    for memory in memories:
        memory.add(*conversation())
        memory.extend(conversation()[1:])
    return memories


async def under_asyncio() -> list[cm.ChatMessage]:
    memories = cm.ChatMemoryProvider(lambda name: cm.MessageWindowChatMemory(name, 3, FileStore()))
    memory = memories.get("a")
    await memory.aadd(cm.UserMessage("one"), cm.AiMessage("two"))
    await memory.aextend([cm.UserMessage("three")])
    await memory.aset(await memory.amessages())
    messages = await memory.amessages()
    await memory.aclear()
    assert memories.evict("a")
    assert not memories.evict("a")
    return messages


def policies() -> list[cm.Policy]:
    policies = [
        cm.MessageWindow(20),
        cm.TokenWindow(4_000, estimator="gpt-4o"),
        cm.TurnWindow(10),
        cm.policy_from_text("token_window:1000"),
        cm.policy_from_dict({"kind": "message_window", "max_messages": 5}),
    ]
    assert cm.policies_from_text(cm.text_of_policy(policies[1])) == policies[1:2]
    assert {policy.kind for policy in policies} <= set(cm.policy_kinds())
    assert all(map(cm.can_decide, policies))
    totals = cm.Totals(count=3, tokens=70, cost=9)
    assert [cm.load_or_tokens(policy, totals) for policy in policies] == [9, 12, 9, 12, 9]
    assert "estimator" in cm.caller_options(cm.MessageWindow)
    return policies


def refused() -> str:
    keeping = cm.MessageWindow(20, low_water=Decimal("0.5"), oversized=cm.Oversized.KEEP)
    assert keeping == cm.MessageWindow(20, low_water=0.5, oversized="keep", estimator="gpt-4o")
    assert keeping == cm.policy_from_text("message_window:20,low_water=0.5,oversized=keep")
    written = cm.TokenWindow(20, low_water="0.5", oversized="keep", snap_to_user=True)
    share: Decimal = written.low_water
    assert (share, written.oversized) == (keeping.low_water, keeping.oversized)
    assert replace(written, snap_to_user=False).low_water == share
    memory = cm.TokenWindowChatMemory("a", 50, low_water=0.6, oversized="reject")
    try:
        memory.add(cm.UserMessage("a long question " * 20))
    except (cm.OversizedMessage, cm.WindowTooLarge, cm.NoRoomBesidePins, cm.LongRecount) as error:
        return str(error)
    except (cm.NotPinnable, cm.NotCompactable, cm.NotRepairable) as error:
        return str(error)
    return ""


def summarized() -> list[cm.ChatMessage]:
    def summarize(messages: list[cm.ChatMessage]) -> str:
        return f"{len(messages)} messages"

    memory = cm.SummarizingChatMemory("a", 100, summarize, keep_tokens=10, append_terms=5)
    memory.extend(conversation())
    return memory.messages()


def recalled() -> int | None:
    found: list[cm.Recall] = cm.recall(conversation(), [*policies(), None], terms=["Ada"])
    curve: cm.RecallCurve = cm.recall_curve(conversation(), cm.MessageWindow(1), prefixes=["INV-"])
    assert {each.held for each in found} == {curve.held(20)}
    rules = cm.CacheRules(step=128, least=1_024, life=600)
    costs = [each.relative_cost(cm.Prices(Decimal(2), Decimal("0.2"))) for each in found]
    assert cm.recall([], [None], rules=rules)[0].relative_cost() is None
    assert all(costs)
    return curve.smallest_limit(0.95)


def rendered() -> list[str]:
    """Rendered messages for the providers' libraries, whose parameters have their own types."""

    class Turn(TypedDict):
        role: str
        content: str

    def complete(*, messages: Iterable[Turn]) -> str:
        return "".join(turn["role"][0] for turn in messages)

    def create(*, model: str, system: str, messages: list[Turn]) -> str:
        return f"{model}: {system} {messages[0]['role']}"

    memory = cm.MessageWindowChatMemory("a", 5)
    memory.add(cm.SystemMessage("Be brief."), cm.UserMessage("hello"))
    name: str = "openai_chat"  # a format that the types do not know
    either: list[Any] | dict[str, Any] | str = memory.render(name)
    assert either == memory.render("openai_chat")
    answers = [
        complete(messages=memory.render("openai_chat")),
        create(model="m", **memory.render("anthropic")),
        memory.render("markdown").partition("\n")[0],
    ]
    asked: dict[str, Any] = asyncio.run(memory.arender("openai_responses"))
    return [*answers, asked["input"][1]["content"]]


def linted() -> list[str]:
    messages = conversation()[2:3]
    found: list[cm.Finding] = cm.lint(messages, provider="openai")
    repaired: cm.Repaired = cm.repair(messages, provider="openai", numbers=[7])
    assert not repaired.left
    return [each.rule for each in found] + [each.what for each in repaired.done]


def main() -> None:
    for message in conversation():
        assert cm.message_from_json(cm.message_to_json(message)) == message
        assert cm.load_json(cm.message_to_json(message)) == cm.message_to_dict(message)
        assert message.type in cm.MessageType
    assert all(memory.messages() for memory in windows())
    assert [cm.text_of(message) for message in asyncio.run(under_asyncio())] == [
        "one",
        "two",
        "three",
    ]
    assert len(policies()) == 5
    assert "oversized" in refused()
    assert recalled() == 1
    assert linted() == ["dangling_call", "Tool call #7: a placeholder result was added."]
    assert cm.Reason.CAPACITY in cm.Reason
    assert cm.UserMessage("hello").single_text() == cm.UserMessage("hello").text == "hello"
    assert rendered()[:2] == ["su", "m: Be brief. user"]
    with suppress(*ERRORS):
        cm.MessageWindowChatMemory("a", 0)
        raise AssertionError("a limit of 0 is refused")


if __name__ == "__main__":
    main()
