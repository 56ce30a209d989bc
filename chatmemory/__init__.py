"""Chat memory with the semantics of LangChain4j. It also stores the whole history, and a ledger of
every change.

The names that this package exports work without Django. With Django, add "chatmemory" to
INSTALLED_APPS and store conversations with `chatmemory.stores.database.DjangoChatMemoryStore`.
"""

__version__ = "0.1.0"  # before the imports: chatmemory.messages recognizes this file by it

from chatmemory.exceptions import (
    ChatMemoryError,
    CorruptRow,
    DeletionUnfinished,
    DuplicateClientId,
    EstimatorUnavailable,
    ImportUnfinished,
    InvalidMessage,
    InvalidValue,
    LongRecount,
    MemoryExists,
    MemoryNotFound,
    MessageNotFound,
    MessageTooLarge,
    NoRoomBesidePins,
    NotCompactable,
    NotPinnable,
    NotRepairable,
    OversizedMessage,
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
from chatmemory.lint import Finding
from chatmemory.lint.linter import lint, repair
from chatmemory.lint.repairs import Repaired
from chatmemory.memories.limited import (
    MessageWindowChatMemory,
    TokenWindowChatMemory,
    TurnWindowChatMemory,
)
from chatmemory.memories.memory import ChatMemory
from chatmemory.memories.provider import ChatMemoryProvider
from chatmemory.memories.summarizing import SummarizingChatMemory
from chatmemory.messages.codec import (
    load_json,
    message_from_json,
    message_to_dict,
    message_to_json,
    messages_from_json,
    messages_to_json,
)
from chatmemory.messages.contents import (
    Audio,
    AudioContent,
    Content,
    DetailLevel,
    Image,
    ImageContent,
    PdfFile,
    PdfFileContent,
    TextContent,
    Video,
    VideoContent,
)
from chatmemory.messages.estimators import OpenAiTokenCountEstimator, TokenCountEstimator
from chatmemory.messages.message import (
    AiMessage,
    ChatMessage,
    CustomMessage,
    MessageType,
    SystemMessage,
    ToolExecutionRequest,
    ToolExecutionResultMessage,
    UserMessage,
    text_of,
)
from chatmemory.recall import Recall, RecallCurve, recall, recall_curve
from chatmemory.recall.cost import CacheRules, Prices
from chatmemory.stores.memory import InMemoryChatMemoryStore, SingleSlotChatMemoryStore
from chatmemory.windows.eviction import Reason
from chatmemory.windows.policies import (
    MessageWindow,
    Oversized,
    Policy,
    TokenWindow,
    TurnWindow,
    policy_kinds,
)
from chatmemory.windows.store import ChatMemoryStore
from chatmemory.windows.stored_policies import can_decide, load_or_tokens
from chatmemory.windows.window import Totals
from chatmemory.windows.written_policies import (
    caller_options,
    policies_from_text,
    policy_from_dict,
    policy_from_text,
    text_of_policy,
)

__all__ = [
    "AiMessage",
    "Audio",
    "AudioContent",
    "CacheRules",
    "ChatMemory",
    "ChatMemoryError",
    "ChatMemoryProvider",
    "ChatMemoryStore",
    "ChatMessage",
    "Content",
    "CorruptRow",
    "CustomMessage",
    "DeletionUnfinished",
    "DetailLevel",
    "DuplicateClientId",
    "EstimatorUnavailable",
    "Finding",
    "Image",
    "ImageContent",
    "ImportUnfinished",
    "InMemoryChatMemoryStore",
    "InvalidMessage",
    "InvalidValue",
    "LongRecount",
    "MemoryExists",
    "MemoryNotFound",
    "MessageNotFound",
    "MessageTooLarge",
    "MessageType",
    "MessageWindow",
    "MessageWindowChatMemory",
    "NoRoomBesidePins",
    "NotCompactable",
    "NotPinnable",
    "NotRepairable",
    "OpenAiTokenCountEstimator",
    "Oversized",
    "OversizedMessage",
    "PdfFile",
    "PdfFileContent",
    "Policy",
    "PolicyRequired",
    "PolicyUnavailable",
    "Prices",
    "Reason",
    "Recall",
    "RecallCurve",
    "Repaired",
    "SingleSlotChatMemoryStore",
    "StepNotFound",
    "SummarizingChatMemory",
    "SystemMessage",
    "TextContent",
    "TokenCountEstimator",
    "TokenWindow",
    "TokenWindowChatMemory",
    "ToolExecutionRequest",
    "ToolExecutionResultMessage",
    "Totals",
    "TurnWindow",
    "TurnWindowChatMemory",
    "UnknownEstimator",
    "UnreadableTranscript",
    "UnstorableText",
    "UnsupportedMessage",
    "UserMessage",
    "VersionConflict",
    "Video",
    "VideoContent",
    "WindowTooLarge",
    "caller_options",
    "can_decide",
    "lint",
    "load_json",
    "load_or_tokens",
    "message_from_json",
    "message_to_dict",
    "message_to_json",
    "messages_from_json",
    "messages_to_json",
    "policies_from_text",
    "policy_from_dict",
    "policy_from_text",
    "policy_kinds",
    "recall",
    "recall_curve",
    "repair",
    "text_of",
    "text_of_policy",
]
