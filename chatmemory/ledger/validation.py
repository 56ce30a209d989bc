"""Checks the arguments of callers before anything is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar, overload

from chatmemory.conf import configuration
from chatmemory.exceptions import (
    ChatMemoryError,
    InvalidValue,
    MessageTooLarge,
    UnstorableText,
    WindowTooLarge,
)
from chatmemory.inserted import NewMessage
from chatmemory.messages.codec import path_text, stored_json, strings_of
from chatmemory.messages.field_checks import brief
from chatmemory.messages.ids import ID_LENGTH as ID_LENGTH
from chatmemory.messages.ids import check_text as check_text
from chatmemory.messages.ids import storable_id, string_id
from chatmemory.messages.message import ChatMessage, chat_messages, message_list, text_of
from chatmemory.patterns import declared_pattern
from chatmemory.search import DIGEST_LABEL
from chatmemory.windows.policies import Policy
from chatmemory.windows.written_policies import measured

ACTOR_LENGTH = 255
LIMIT_MAX = 2**63 - 1
LABELS_MAX = 64
# The properties for media in a message's JSON; a URL contains media if it begins with data:
_MEDIA = declared_pattern(r"contents\[\d+\]\.\w+\.(base64Data|binaryData)")
_MEDIA_URL = declared_pattern(r"contents\[\d+\]\.\w+\.url")
PATH_SHOWN = 100  # characters


def check_id(memory_id: object) -> str:
    """Return a memory id as a string. Raises InvalidValue unless it has 1 to 255 characters, and
    can be stored.
    """
    found = string_id(memory_id)
    if not 0 < len(found) <= ID_LENGTH:
        raise InvalidValue(
            f"a memory id must be a string of 1 to {ID_LENGTH} characters, not {_shown(found)}"
        )
    check_text(found, "a memory id")
    return found


def _shown(value: str) -> str:
    return f"{value[:20]!r}… ({len(value):,} characters)" if value else "''"


def check_ids(memory_ids: object) -> set[str]:
    """Return a collection of memory ids as a set.

    Raises InvalidValue for a single string, whose letters would be read as ids. Raises
    UnstorableText, and MemoryNotFound for an id that is too long.
    """
    if isinstance(memory_ids, str | bytes | Mapping) or not isinstance(memory_ids, Iterable):
        raise InvalidValue(f"expected a list of ids, not {brief(memory_ids)}")
    return {storable_id(memory_id) for memory_id in memory_ids}


def check_seqs(seqs: object, name: str) -> set[int]:
    """Return a collection of message numbers as a set. Raises InvalidValue for anything else.
    `name` is the name of the argument for the error.
    """
    values: list[Any] = [*seqs] if isinstance(seqs, Iterable) else [None]  # checked below
    if not all(type(seq) is int for seq in values):
        raise InvalidValue(f"{name} must be a list of whole numbers, not {brief(seqs)}")
    return set(values)


def check_actor(actor: object) -> None:
    """Raise InvalidValue unless `actor`, the name of the author of a change, is a storable string
    of up to 255 characters.

    A number such as 7 is refused: the database would store the text "7", which does not fit the
    digest of the step.
    """
    if not isinstance(actor, str) or len(actor) > ACTOR_LENGTH:
        expected = f"a string of up to {ACTOR_LENGTH} characters"
        raise InvalidValue(f"an actor must be {expected}, not {brief(actor)}")
    check_text(actor, "an actor")


def check_whole_number(number: object, name: str) -> None:
    """Raise InvalidValue unless an argument is a whole number. The text "1" is refused. `name` is
    the name of the argument for the error.
    """
    if not isinstance(number, int) or isinstance(number, bool):
        raise InvalidValue(f"{name} must be a whole number, not {brief(number)}")


def check_change(memory_id: object, actor: object, expected_version: object) -> None:
    """Raise InvalidValue or UnstorableText unless the id, the actor and the version of a change are
    valid.
    """
    check_id(memory_id)
    check_actor(actor)
    if expected_version is not None:
        check_whole_number(expected_version, "expected_version")


def is_id(memory_id: object) -> bool:
    """Return whether a conversation can have this id."""
    try:
        check_id(memory_id)
    except ChatMemoryError:
        return False
    return True


@overload
def check_policy(policy: Policy) -> Policy: ...
@overload
def check_policy(policy: None) -> None: ...
def check_policy(policy: Policy | None) -> Policy | None:
    """Return a policy that can be stored; None stays None.

    A policy that counts tokens gets its overhead: the tokens of a request without messages. Raises
    InvalidValue, such as for a limit that is too large, and UnknownEstimator.
    """
    if policy is None:
        return None
    if not isinstance(policy, Policy):
        raise InvalidValue(f"policy must be one such as MessageWindow(20), not {policy!r}")
    check_storable_limit(policy)
    return measured(policy)


def check_storable_limit(policy: Policy | None) -> None:
    """Raise InvalidValue for a limit that a database cannot store."""
    if policy is not None and policy.limit > LIMIT_MAX:
        raise InvalidValue(f"{policy.limit_name} must be at most {LIMIT_MAX}")


def check_added(count: int) -> None:
    """Raise InvalidValue if more messages are to be added at once than the settings allow."""
    most = configuration().ADDED_MESSAGES
    if count > most:
        raise InvalidValue(
            f"one request can add at most {most:,} messages, the limit of "
            f'CHATMEMORY["ADDED_MESSAGES"], but has {count:,}: import a longer conversation as a '
            "file"
        )


def check_bounds(messages: int, size: int) -> None:
    """Raise WindowTooLarge if a window has more messages, or more bytes of JSON, than the settings
    allow. `size` is the number of bytes.
    """
    settings = configuration()
    found, most, unit = size, settings.WINDOW_BYTES, "bytes"
    if messages > settings.WINDOW_MESSAGES:
        found, most, unit = messages, settings.WINDOW_MESSAGES, "messages"
    if found > most:
        raise WindowTooLarge(
            f"the window would hold {found:,} {unit}, and "
            f'CHATMEMORY["WINDOW_{unit.upper()}"] allows {most:,}: lower the limit of its policy, '
            "or clear it"
        )


def check_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return labels as a dictionary.

    Raises InvalidValue for more than 64 labels, and for names or values that are no storable
    strings. A name must have 1 to 255 characters, and a value at most 255. The label that
    identifies an import is refused, too.
    """
    if not isinstance(labels, Mapping):
        raise InvalidValue("labels must be an object with string values")
    if len(labels) > LABELS_MAX:
        raise InvalidValue(
            f"a conversation can have at most {LABELS_MAX} labels, but has {len(labels)}"
        )
    for name, value in labels.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidValue(
                f"the name and the value of a label must be strings, but are: {brief(name)} and "
                f"{brief(value)}"
            )
        if name == DIGEST_LABEL:
            raise InvalidValue(
                f"the label {name!r} is reserved for imports: choose a different name"
            )
        if not 0 < len(name) <= ID_LENGTH or len(value) > ID_LENGTH:
            raise InvalidValue(
                f"a label name must have 1 to {ID_LENGTH} characters, and a label value at most "
                f"{ID_LENGTH}, unlike the label {brief(name)}"
            )
        check_text(name + value, "a label")
    return dict(labels)


Item = TypeVar("Item")


class Storable(list[Item]):
    """A list of messages that passed all checks. `characters` is the length of their JSON."""

    def __init__(self, items: Iterable[Item], characters: int) -> None:
        super().__init__(items)
        self.characters = characters


def storable_additions(messages: Iterable[ChatMessage | NewMessage]) -> Storable[NewMessage]:
    """Return messages to add, each as a NewMessage. Raises an error for a message that cannot be
    stored.

    The errors are InvalidMessage, InvalidValue, MessageTooLarge and UnstorableText.
    """
    if isinstance(messages, Storable):
        return messages
    new = [
        each if isinstance(each, NewMessage) else NewMessage(each)
        for each in message_list(messages)
    ]
    characters = storable_messages([each.message for each in new]).characters
    for each in new:
        if each.client_id is not None:
            check_client_id(each.client_id)
        if each.said_at is not None:
            _check_time(each.said_at)
    return Storable(new, characters)


def storable_messages(messages: Iterable[ChatMessage]) -> Storable[ChatMessage]:
    """Return the messages as a list. Raises an error for a message that cannot be stored.

    The errors are InvalidMessage, UnstorableText and MessageTooLarge. The attribute `index` of
    MessageTooLarge is the index of the message in `messages`.
    """
    if isinstance(messages, Storable):
        return messages
    checked, longest, characters = chat_messages(messages), configuration().TEXT_CHARACTERS, 0
    for index, message in enumerate(checked):
        as_json = stored_json(message)
        characters += len(as_json)
        if len(as_json) > longest:  # otherwise none of its strings can be too long
            for path, text in strings_of(message):
                if len(text) > longest:
                    _check_size(text, path_text(path), index)
        _check_unicode(as_json)
        if "\\u0000" in as_json and "\x00" in text_of(message):
            raise UnstorableText(
                "the text contains a NUL character, which cannot be stored: remove it"
            )
    return Storable(checked, characters)


def _check_size(text: str, path: str, index: int) -> None:
    """Raise MessageTooLarge if a text, or the base64 of media, is larger than its setting
    allows.
    """
    settings = configuration()
    most, unit, setting = settings.TEXT_CHARACTERS, "characters", "TEXT_CHARACTERS"
    instead = "send several messages"
    if _MEDIA.fullmatch(path) or (_MEDIA_URL.fullmatch(path) and text.startswith("data:")):
        most, unit, setting = settings.MEDIA_BYTES, "bytes", "MEDIA_BYTES"
        instead = "send a URL where it can be found"
    if len(text) > most:
        raise MessageTooLarge(
            f"{path[:PATH_SHOWN]} has {len(text):,} {unit}, and at most {most:,} are stored: "
            f'{instead}, or raise CHATMEMORY["{setting}"]',
            index,
        )


def _check_unicode(text: str) -> None:
    """Raise UnstorableText if the text has a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnstorableText(
            f"the text contains a lone surrogate (U+{ord(error.object[error.start]):04X}), "
            "which cannot be stored: send valid Unicode"
        ) from error


def _check_time(said_at: object) -> None:
    if not isinstance(said_at, datetime) or said_at.utcoffset() is None:
        raise InvalidValue(f"said_at must be a datetime with a time zone, not {brief(said_at)}")


def check_client_id(client_id: object) -> None:
    """Raise InvalidValue unless a client id is a storable string of 1 to 255 characters."""
    if not isinstance(client_id, str) or not 0 < len(client_id) <= ID_LENGTH:
        raise InvalidValue(f"a client id must be a string of 1 to {ID_LENGTH} characters")
    check_text(client_id, "a client id")
