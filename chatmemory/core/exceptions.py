"""Everything chatmemory raises on purpose.

ChatMemoryError
├── InvalidValue (also a ValueError)        a limit, id, message or policy that cannot be
│   ├── InvalidMessage                      a message whose values or JSON the law refuses
│   ├── UnsupportedMessage                  the estimator cannot count this message
│   ├── UnknownEstimator                    no estimator goes by that name here
│   ├── UnstorableText                      NUL or a lone surrogate: no database can hold it
│   └── UnreadableTranscript                a transcript that breaks its format; names the message
├── MemoryNotFound (also a LookupError)     no conversation has this id
├── MessageNotFound (also a LookupError)    the conversation has no such message
├── StepNotFound (also a LookupError)       the conversation has no such step
├── MemoryExists                            a conversation with this id exists already
├── PolicyRequired                          the client decides the window: set a policy first
├── PolicyUnavailable                       the policy's kind is not installed here
├── VersionConflict                         somebody changed the conversation in between
├── DuplicateClientId                       the client's message id already names another message
└── CorruptRow                              a stored row that cannot be read; names the row
"""


class ChatMemoryError(Exception):
    """Base of all errors that chatmemory raises on purpose."""


class InvalidValue(ChatMemoryError, ValueError):
    """A value that no memory accepts; the words follow LangChain4j where it has some."""


class InvalidMessage(InvalidValue):
    """A message that LangChain4j would refuse to build or to deserialize."""


class UnsupportedMessage(InvalidValue):
    """A strict estimator met a message or content that LangChain4j refuses to count."""


class UnknownEstimator(InvalidValue):
    """No token count estimator goes by this name here."""


class UnstorableText(InvalidValue):
    """Text with NUL or a lone surrogate: kept in memory, refused by databases."""


class MemoryNotFound(ChatMemoryError, LookupError):
    """No conversation has this id."""


class MessageNotFound(ChatMemoryError, LookupError):
    """The conversation has no message with this number."""


class StepNotFound(ChatMemoryError, LookupError):
    """The conversation has no step with this number."""


class MemoryExists(ChatMemoryError):
    """A conversation with this id exists already."""


class PolicyRequired(ChatMemoryError):
    """The conversation has no policy (its client decides the window), and this call needs one."""


class PolicyUnavailable(ChatMemoryError):
    """The conversation's policy is of a kind that is not installed here."""


class VersionConflict(ChatMemoryError):
    """The conversation is no longer at the version that the caller saw."""

    def __init__(self, memory_id: str, version: int, expected: int) -> None:
        self.memory_id, self.version = memory_id, version
        super().__init__(
            f"{memory_id!r} is at version {version}, not {expected}: read it again and repeat the "
            "change"
        )


class DuplicateClientId(ChatMemoryError):
    """The caller's message id already names another message of this conversation."""


class CorruptRow(ChatMemoryError):
    """A stored row that cannot be read; the message names the row."""


class UnreadableTranscript(InvalidValue):
    """A transcript whose message at `index` (from 0) breaks its format; -1 for the whole."""

    def __init__(self, index: int, why: str) -> None:
        self.index = index
        self.why = why
        super().__init__(f"message {index + 1}: {why}" if index >= 0 else why)
