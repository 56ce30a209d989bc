"""Chat memory with LangChain4j's semantics, the whole history, and a ledger of every change.

The names below work without Django. With Django, add "chatmemory" to INSTALLED_APPS and keep
conversations in `chatmemory.stores.database.DjangoChatMemoryStore`.
"""

from chatmemory.core.codec import (
    message_from_json,
    message_to_json,
    messages_from_json,
    messages_to_json,
)
from chatmemory.core.estimators import OpenAiTokenCountEstimator, TokenCountEstimator
from chatmemory.core.exceptions import (
    ChatMemoryError,
    CorruptRow,
    DuplicateClientId,
    InvalidMessage,
    InvalidValue,
    MemoryExists,
    MemoryNotFound,
    MessageNotFound,
    PolicyRequired,
    StepNotFound,
    UnknownEstimator,
    UnreadableTranscript,
    UnstorableText,
    UnsupportedMessage,
    VersionConflict,
)
from chatmemory.core.memory import ChatMemory, MessageWindowChatMemory, TokenWindowChatMemory
from chatmemory.core.messages import (
    AiMessage,
    AudioContent,
    CustomMessage,
    ImageContent,
    PdfFileContent,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    VideoContent,
)
from chatmemory.core.store import ChatMemoryStore
from chatmemory.stores.memory import InMemoryChatMemoryStore, SingleSlotChatMemoryStore

__all__ = [
    "AiMessage",
    "AudioContent",
    "ChatMemory",
    "ChatMemoryError",
    "ChatMemoryStore",
    "CorruptRow",
    "CustomMessage",
    "DuplicateClientId",
    "ImageContent",
    "InMemoryChatMemoryStore",
    "InvalidMessage",
    "InvalidValue",
    "MemoryExists",
    "MemoryNotFound",
    "MessageNotFound",
    "MessageWindowChatMemory",
    "OpenAiTokenCountEstimator",
    "PdfFileContent",
    "PolicyRequired",
    "SingleSlotChatMemoryStore",
    "StepNotFound",
    "SystemMessage",
    "TextContent",
    "TokenCountEstimator",
    "TokenWindowChatMemory",
    "ToolExecutionRequest",
    "ToolExecutionResultMessage",
    "UnknownEstimator",
    "UnreadableTranscript",
    "UnstorableText",
    "UnsupportedMessage",
    "UserMessage",
    "VersionConflict",
    "VideoContent",
    "message_from_json",
    "message_to_json",
    "messages_from_json",
    "messages_to_json",
]
