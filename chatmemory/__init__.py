"""Chat memory with LangChain4j's semantics, the whole history, and a ledger of every change.

The names below work without Django. With Django, add "chatmemory" to INSTALLED_APPS and keep
conversations in `chatmemory.stores.database.DjangoChatMemoryStore`.
"""

from chatmemory.core.codec import (
    load_json,
    message_from_json,
    message_to_dict,
    message_to_json,
    messages_from_json,
    messages_to_json,
)
from chatmemory.core.estimators import (
    OpenAiTokenCountEstimator,
    TokenCountEstimator,
)
from chatmemory.core.eviction import Reason
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
    PolicyUnavailable,
    StepNotFound,
    UnknownEstimator,
    UnreadableTranscript,
    UnstorableText,
    UnsupportedMessage,
    VersionConflict,
)
from chatmemory.core.memory import (
    ChatMemory,
    MessageWindowChatMemory,
    TokenWindowChatMemory,
)
from chatmemory.core.messages import (
    AiMessage,
    AudioContent,
    ChatMessage,
    Content,
    CustomMessage,
    ImageContent,
    MessageType,
    PdfFileContent,
    SystemMessage,
    TextContent,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    VideoContent,
    text_of,
)
from chatmemory.core.policies import (
    MessageWindow,
    Policy,
    TokenWindow,
    can_decide,
    policy_from_dict,
    policy_from_text,
    policy_kinds,
)
from chatmemory.core.store import ChatMemoryStore
from chatmemory.stores.memory import (
    InMemoryChatMemoryStore,
    SingleSlotChatMemoryStore,
)

__all__ = [
    "AiMessage",
    "AudioContent",
    "ChatMemory",
    "ChatMemoryError",
    "ChatMemoryStore",
    "ChatMessage",
    "Content",
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
    "MessageType",
    "MessageWindow",
    "MessageWindowChatMemory",
    "OpenAiTokenCountEstimator",
    "PdfFileContent",
    "Policy",
    "PolicyRequired",
    "PolicyUnavailable",
    "Reason",
    "SingleSlotChatMemoryStore",
    "StepNotFound",
    "SystemMessage",
    "TextContent",
    "TokenCountEstimator",
    "TokenWindow",
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
    "can_decide",
    "load_json",
    "message_from_json",
    "message_to_dict",
    "message_to_json",
    "messages_from_json",
    "messages_to_json",
    "policy_from_dict",
    "policy_from_text",
    "policy_kinds",
    "text_of",
]
