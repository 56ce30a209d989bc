"""A program that uses every public name, as one's own code would; mypy checks it strictly."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

from chatmemory import (
    AiMessage,
    Audio,
    AudioContent,
    ChatMemory,
    ChatMemoryError,
    ChatMemoryProvider,
    ChatMemoryStore,
    ChatMessage,
    Content,
    CorruptRow,
    CustomMessage,
    DeletionUnfinished,
    DetailLevel,
    DuplicateClientId,
    EstimatorUnavailable,
    Image,
    ImageContent,
    ImportUnfinished,
    InMemoryChatMemoryStore,
    InvalidMessage,
    InvalidValue,
    LongRecount,
    MemoryExists,
    MemoryNotFound,
    MessageNotFound,
    MessageTooLarge,
    MessageType,
    MessageWindow,
    MessageWindowChatMemory,
    NoRoomBesidePins,
    NotPinnable,
    OpenAiTokenCountEstimator,
    Oversized,
    OversizedMessage,
    PdfFile,
    PdfFileContent,
    Policy,
    PolicyRequired,
    PolicyUnavailable,
    Reason,
    Recall,
    RecallCurve,
    SingleSlotChatMemoryStore,
    StepNotFound,
    SystemMessage,
    TextContent,
    TokenCountEstimator,
    TokenWindow,
    TokenWindowChatMemory,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    Totals,
    UnknownEstimator,
    UnreadableTranscript,
    UnstorableText,
    UnsupportedMessage,
    UserMessage,
    VersionConflict,
    Video,
    VideoContent,
    WindowTooLarge,
    caller_options,
    can_decide,
    load_json,
    load_or_tokens,
    message_from_json,
    message_to_dict,
    message_to_json,
    messages_from_json,
    messages_to_json,
    policies_from_text,
    policy_from_dict,
    policy_from_text,
    policy_kinds,
    recall,
    recall_curve,
    text_of,
    text_of_policy,
)

ERRORS: tuple[type[ChatMemoryError], ...] = (
    CorruptRow,
    DuplicateClientId,
    EstimatorUnavailable,
    InvalidMessage,
    InvalidValue,
    MemoryExists,
    MemoryNotFound,
    MessageNotFound,
    MessageTooLarge,
    DeletionUnfinished,
    ImportUnfinished,
    PolicyRequired,
    PolicyUnavailable,
    StepNotFound,
    UnknownEstimator,
    UnreadableTranscript,
    UnstorableText,
    UnsupportedMessage,
    VersionConflict,
    WindowTooLarge,
)


class LettersEstimator:
    """One token for each character."""

    def estimate_token_count_in_text(self, text: str) -> int:
        return len(text)

    def estimate_token_count_in_message(self, message: ChatMessage) -> int:
        return self.estimate_token_count_in_text(text_of(message))

    def estimate_token_count_in_messages(self, messages: Iterable[ChatMessage]) -> int:
        return sum(map(self.estimate_token_count_in_message, messages))


class FileStore(ChatMemoryStore):
    """A store of one's own: the JSON of each conversation."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def get_messages(self, memory_id: str) -> list[ChatMessage]:
        return messages_from_json(self.files.get(memory_id), nulls=False)

    def update_messages(self, memory_id: str, messages: Sequence[ChatMessage]) -> None:
        self.files[memory_id] = messages_to_json(messages)

    def delete_messages(self, memory_id: str) -> None:
        self.files.pop(memory_id, None)


class LastTwo(ChatMemory):
    """A memory of one's own kind."""

    def __init__(self, id: str, store: ChatMemoryStore | None = None) -> None:
        super().__init__(id, 2, store)

    def policy(self) -> Policy:
        return MessageWindow(self.current_limit())


def conversation() -> list[ChatMessage]:
    contents: list[Content] = [
        TextContent("What do you see and hear?"),
        ImageContent("https://example.org/a.png"),
        ImageContent(Image("https://example.org/a.png"), DetailLevel.HIGH),
        AudioContent(Audio(base64_data="AAAA", mime_type="audio/wav")),
        VideoContent(Video("https://example.org/a.mp4")),
        PdfFileContent(PdfFile("https://example.org/a.pdf")),
    ]
    call = ToolExecutionRequest.of("find_order", {"order": "A-1182"}, id="1")
    return [
        SystemMessage("Be brief."),
        UserMessage(contents, name="Ada"),
        AiMessage("Let me look.", [call]),
        ToolExecutionResultMessage("1", "find_order", "shipped"),
        CustomMessage({"seen": True}),
        UserMessage("Thank you."),
    ]


def windows() -> list[ChatMemory]:
    estimator: TokenCountEstimator = LettersEstimator()
    memories: list[ChatMemory] = [
        MessageWindowChatMemory("a", 3),
        MessageWindowChatMemory("a", lambda memory_id: len(memory_id) + 2, FileStore()),
        TokenWindowChatMemory("a", 50, OpenAiTokenCountEstimator("gpt-4o")),
        TokenWindowChatMemory("a", 50, estimator, InMemoryChatMemoryStore()),
        LastTwo("a", SingleSlotChatMemoryStore("a")),
    ]
    for memory in memories:
        memory.add(*conversation())
        memory.extend(conversation()[1:])
    return memories


async def under_asyncio() -> list[ChatMessage]:
    memories = ChatMemoryProvider(lambda name: MessageWindowChatMemory(name, 3, FileStore()))
    memory = memories.get("a")
    await memory.aadd(UserMessage("one"), AiMessage("two"))
    await memory.aextend([UserMessage("three")])
    await memory.aset(await memory.amessages())
    messages = await memory.amessages()
    await memory.aclear()
    assert memories.evict("a")
    assert not memories.evict("a")
    return messages


def policies() -> list[Policy]:
    policies = [
        MessageWindow(20),
        TokenWindow(4_000, estimator="gpt-4o"),
        policy_from_text("token_window:1000"),
        policy_from_dict({"kind": "message_window", "max_messages": 5}),
    ]
    assert policies_from_text(text_of_policy(policies[1])) == policies[1:2]
    assert {policy.kind for policy in policies} <= set(policy_kinds())
    assert all(map(can_decide, policies))
    assert [load_or_tokens(policy, Totals(3, 70)) for policy in policies] == [3, 73, 73, 3]
    assert "estimator" in caller_options(MessageWindow)
    return policies


def refused() -> str:
    keeping = MessageWindow(20, low_water=Decimal("0.5"), oversized=Oversized.KEEP)
    assert keeping == MessageWindow(20, low_water=0.5, oversized="keep", estimator="gpt-4o")
    assert keeping == policy_from_text("message_window:20,low_water=0.5,oversized=keep")
    written = TokenWindow(20, low_water="0.5", oversized="keep", snap_to_user=True)
    share: Decimal = written.low_water
    assert (share, written.oversized) == (keeping.low_water, keeping.oversized)
    assert replace(written, snap_to_user=False).low_water == share
    memory = TokenWindowChatMemory("a", 50, low_water=0.6, oversized="reject")
    try:
        memory.add(UserMessage("a long question " * 20))
    except (OversizedMessage, WindowTooLarge, NoRoomBesidePins, LongRecount) as error:
        return str(error)
    except NotPinnable as error:
        return str(error)
    return ""


def recalled() -> int | None:
    found: list[Recall] = recall(conversation(), [*policies(), None], terms=["Ada"])
    curve: RecallCurve = recall_curve(conversation(), MessageWindow(1), prefixes=["INV-"])
    assert {each.held for each in found} == {curve.held(20)}
    return curve.smallest_limit(0.95)


def main() -> None:
    for message in conversation():
        assert message_from_json(message_to_json(message)) == message
        assert load_json(message_to_json(message)) == message_to_dict(message)
        assert message.type in MessageType
    assert all(memory.messages() for memory in windows())
    assert [text_of(message) for message in asyncio.run(under_asyncio())] == ["one", "two", "three"]
    assert len(policies()) == 4
    assert "oversized" in refused()
    assert recalled() == 1
    assert Reason.CAPACITY in Reason
    assert UserMessage("hello").single_text() == "hello"
    with suppress(*ERRORS):
        MessageWindowChatMemory("a", 0)
        raise AssertionError("a limit of 0 is refused")


if __name__ == "__main__":
    main()
