"""Files that the lab reads and does not store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.core.files.uploadedfile import UploadedFile

from chatmemory import ChatMessage, InvalidValue, message_to_json, messages_to_json
from chatmemory.formats import Reading, Transcript, read_transcripts
from inspector.conf import configuration
from inspector.forms import searchable
from inspector.middleware.bodies import messages_limit, upload_bounds, upload_limit

Files = Mapping[str, "UploadedFile[bytes]"]
NAMED = 3


@dataclass(frozen=True)
class CarriedConversation:
    """A conversation of a file, which each form of its page sends again.

    `title` says which one it is, and `text` has the messages as LangChain4j writes them.
    """

    title: str
    messages: list[ChatMessage]
    text: str


def read_file(files: Files) -> tuple[str, Reading]:
    """Return the name of the chosen file, and its conversations. Raises InvalidValue."""
    file, limit = files.get("file"), upload_limit()
    if file is None or file.size is None or file.size > limit.size:
        raise InvalidValue(f"Choose a file of at most {limit}.")
    return file.name or "a file", read_transcripts(file, bounds=upload_bounds())


def conversations_of(files: Files) -> tuple[str, Reading]:
    """Return the same. Raises InvalidValue if no conversation can be read."""
    name, reading = read_file(files)
    if not reading.transcripts:
        raise _unreadable(reading)
    return name, reading


def conversation_of(given: Mapping[str, str], files: Files) -> CarriedConversation:
    """Return the conversation that a form carries, or else the one that it chooses of a file.

    Raises InvalidValue.
    """
    if "file" not in files and (text := given.get("messages")):
        _check_size([text])
        messages = _chosen(read_transcripts(text, "langchain4j"), "").messages
        return _carried(searchable(given.get("title", "")), list(messages))
    name, reading = read_file(files)
    found = _chosen(reading, searchable(given.get("conversation", "")))
    title = name
    if len(reading.transcripts) + len(reading.refused) > 1:
        which = "" if found.name == str(found.number) else f" ({found.name})"
        title = f"{name}, conversation {found.number}{which}"
    return _carried(searchable(title), list(found.messages))


def _carried(title: str, messages: list[ChatMessage]) -> CarriedConversation:
    _check_size(map(message_to_json, messages))  # before all of it is in memory once more
    text = messages_to_json(messages)
    _check_size([text])
    return CarriedConversation(title, messages, text)


def _check_size(parts: Iterable[str]) -> None:
    limit, size = messages_limit(), 0
    for part in parts:
        try:
            size += len(part.encode())
        except UnicodeEncodeError as error:
            raise InvalidValue("the messages cannot contain lone surrogates") from error
        if size > limit.size:
            raise InvalidValue(
                f"the conversation is larger than {limit}: import it, or use "
                f"{configuration().MANAGE} recall"
            )


def _chosen(reading: Reading, wanted: str) -> Transcript:
    """Return the conversation with a name, or else with a number; by default the first."""
    known = reading.transcripts
    if known and not wanted:
        return known[0]
    named = [each for each in known if each.name == wanted]
    numbered = [each for each in known if str(each.number) == wanted]
    if named or numbered:
        return (named or numbered)[0]
    if reading.refused and not known:
        raise _unreadable(reading)
    names = ", ".join(f"“{each.name}”" for each in known[:NAMED])
    raise InvalidValue(
        f"the file has no readable conversation “{wanted}”. It has {len(known):,}, such as {names}"
    )


def _unreadable(reading: Reading) -> InvalidValue:
    """Return why the first conversation of a file without a readable one was refused."""
    first = reading.refused[0]
    return InvalidValue(f"{first.where}: {first.why}")
