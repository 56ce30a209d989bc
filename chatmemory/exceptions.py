"""The exceptions of chatmemory.

ChatMemoryError
├── InvalidValue (also a ValueError)        an invalid limit, id, message or policy
│   ├── InvalidMessage                      a message with invalid values or JSON
│   ├── UnsupportedMessage                  the estimator cannot count this message
│   ├── OversizedMessage                    the policy rejects a message of this size
│   ├── WindowTooLarge                      the window would hold more than may be stored
│   ├── MessageTooLarge                     a text or the media of a message exceeds a setting
│   ├── UnknownEstimator                    no estimator has this name
│   ├── UnstorableText                      the text has a NUL or a lone surrogate
│   └── UnreadableTranscript                a transcript breaks the rules of its format
├── MemoryNotFound (also a LookupError)     no conversation has this id
├── MessageNotFound (also a LookupError)    the conversation has no such message
├── StepNotFound (also a LookupError)       the conversation has no such step
├── MemoryExists                            a conversation with this id already exists
├── PolicyRequired                          the client decides the window: set a policy first
├── DeletionUnfinished                      a conversation with this id is being deleted
├── ImportUnfinished                        the conversation is being imported
├── PolicyUnavailable                       the policy's kind is not installed
│   └── EstimatorUnavailable                its estimator is missing (an UnknownEstimator)
├── NoRoomBesidePins                        a message would fit if nothing were pinned
├── NotCompactable                          no summary can take the place of these messages
├── NotPinnable                             this message cannot be pinned or unpinned
├── NotRepairable                           no repair makes a provider take this window
├── LongRecount                             very many messages would be counted again
├── VersionConflict                         the conversation is at another version
├── DuplicateClientId                       the client id already names a different message
└── CorruptRow                              a stored row cannot be read
"""

from __future__ import annotations

# Characters at the beginning of an error, and at its end, which tells the reader what to do.
# Between them may be an id, a value or a fact of any length that somebody else wrote.
_QUOTED = 400


class ChatMemoryError(Exception):
    """Base class of the exceptions of chatmemory."""

    def __str__(self) -> str:
        """Return the text of the error. If the text is very long, its middle is left out."""
        text = super().__str__()
        if len(text) <= 2 * _QUOTED:
            return text
        return f"{text[:_QUOTED]}… ({len(text):,} characters) …{text[-_QUOTED:]}"

    def __reduce__(self) -> tuple[object, ...]:
        """Return how pickling and copying rebuild the error: without a call of `__init__`, whose
        arguments may differ between classes.
        """
        return _error, (type(self), *self.args), vars(self)


def _error(kind: type[ChatMemoryError], *args: object) -> ChatMemoryError:
    return kind.__new__(kind, *args)


class InvalidValue(ChatMemoryError, ValueError):
    """An invalid value. If LangChain4j makes the same check, the error has LangChain4j's text."""


class InvalidMessage(InvalidValue):
    """A message that LangChain4j would refuse to build or to deserialize."""


class UnsupportedMessage(InvalidValue):
    """A message or content that LangChain4j refuses to count. Strict estimators raise this
    error.
    """


class _MessageError(Exception):
    """Base class of errors about one of several messages. `index` is the message's
    position from 0.
    """

    def __init__(self, text: str, index: int | None = None) -> None:
        self.index = index
        super().__init__(text)

    def __str__(self) -> str:
        """Return the text of the error, with the number of the message unless it is the first
        message.
        """
        text = super().__str__()
        return f"message {self.index + 1}: {text}" if self.index else text


class OversizedMessage(_MessageError, InvalidValue):
    """A message that the policy rejects, because the message alone is larger than the limit."""


class MessageTooLarge(_MessageError, InvalidValue):
    """A message with a text or media larger than a setting allows."""


class WindowTooLarge(_MessageError, InvalidValue):
    """A change after which the window would have more messages or bytes than a setting allows."""


class UnknownEstimator(InvalidValue):
    """No token count estimator has this name."""


class UnstorableText(InvalidValue):
    """Text with a NUL or a lone surrogate, which databases cannot store."""


class MemoryNotFound(ChatMemoryError, LookupError):
    """No conversation has this id."""


class MessageNotFound(ChatMemoryError, LookupError):
    """The conversation has no message with this number."""


class StepNotFound(ChatMemoryError, LookupError):
    """The conversation has no step with this number."""


class MemoryExists(ChatMemoryError):
    """A conversation with this id already exists."""


class DeletionUnfinished(ChatMemoryError):
    """A conversation with this id is being deleted."""


class ImportUnfinished(ChatMemoryError):
    """The conversation is being imported, or its import was interrupted."""


class PolicyRequired(ChatMemoryError):
    """The call needs a policy, but the conversation has none. Its client decides what is in the
    window.
    """


class PolicyUnavailable(ChatMemoryError):
    """The conversation's policy is of a kind that is not installed."""


class EstimatorUnavailable(PolicyUnavailable, UnknownEstimator):
    """The token count estimator of the conversation is not installed here."""

    def __init__(self, memory_id: str, estimator: str) -> None:
        super().__init__(
            f"the tokens of {memory_id!r} are counted by {estimator!r}, which is not installed "
            "here: install the package that provides it, or set another policy"
        )


class NoRoomBesidePins(_MessageError, ChatMemoryError):
    """A message that fits into the limit, but not beside the pinned messages. The text of the error
    adds up the sizes of the message and of all messages that cannot leave.
    """


class NotPinnable(ChatMemoryError):
    """The message cannot be pinned or unpinned. The error's text has the reason, such as that the
    message is not in memory.
    """


class NotRepairable(ChatMemoryError):
    """No repair makes a provider accept this window, or no repair is needed."""


class NotCompactable(ChatMemoryError):
    """No summary can replace these messages, or there is no room for this summary. The error's text
    has the reason.
    """


class LongRecount(ChatMemoryError):
    """A simulation with `recount=False` that would count the tokens of very many messages again.

    A new count is needed if the simulated policy has another estimator. `messages` is the number of
    messages in memory.
    """

    field = "recount"

    def __init__(self, estimator: str, messages: int) -> None:
        self.messages = messages
        super().__init__(
            f"the new policy uses another token estimator, {estimator!r}, so all {messages:,} "
            "messages in memory must be recounted: set recount to true to count them"
        )


class VersionConflict(ChatMemoryError):
    """The conversation has another version than the caller expected, because it was changed
    meanwhile.
    """

    def __init__(self, memory_id: str, version: int, expected: int) -> None:
        self.memory_id, self.version = memory_id, version
        super().__init__(
            f"{memory_id!r} is at version {version}, not {expected}: read it again and repeat the "
            "change"
        )


class DuplicateClientId(ChatMemoryError):
    """The client id already names a different message of this conversation."""


class CorruptRow(ChatMemoryError):
    """A stored row cannot be read. The error's text names the row."""


class UnreadableTranscript(InvalidValue):
    """A transcript breaks the rules of its format.

    `index` is the position of the unreadable message, from 0, or -1 for the transcript as a whole.
    """

    def __init__(self, index: int, why: str) -> None:
        self.index = index
        self.why = why
        super().__init__(f"message {index + 1}: {why}" if index >= 0 else why)
