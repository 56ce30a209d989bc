"""Files that the lab reads and does not store, and files of numbers that it sends."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse

from chatmemory import ChatMessage, InvalidValue, message_to_json, messages_to_json
from chatmemory.formats import Reading, Transcript, read_transcripts
from inspector.conf import inspector_configuration
from inspector.forms.fields import searchable
from inspector.middleware.bodies import messages_limit, upload_bounds, upload_limit
from inspector.templatetags.inspector import sentence

Files = Mapping[str, "UploadedFile[bytes]"]
Rows = Sequence[Mapping[str, Any]]
NAMED = 3
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", *(chr(ord(sign) + 0xFEE0) for sign in "=+-@"))


@dataclass(frozen=True)
class CarriedConversation:
    """A conversation of a file, which each form of its page sends again.

    `title` says which one it is, and `text` has the messages as LangChain4j writes them.
    """

    title: str
    messages: list[ChatMessage]
    text: str


def conversations_of(files: Files) -> tuple[str, Reading]:
    """Return the name of the chosen file, and its conversations. Raises InvalidValue."""
    file, limit = files.get("file"), upload_limit()
    if file is None or file.size is None or file.size > limit.size:
        raise InvalidValue(f"Choose a file of at most {limit}.")
    return file.name or "a file", _readable(read_transcripts(file, bounds=upload_bounds()))


def conversation_of(given: Mapping[str, str], files: Files) -> CarriedConversation:
    """Return the conversation that a form carries, or else the one that it chooses of a file.

    Raises InvalidValue.
    """
    if "file" not in files and (text := given.get("messages")):
        _check_size([text])
        reading = _readable(read_transcripts(text, "langchain4j"))
        return _carried(given.get("title", ""), reading.transcripts[0])
    title, reading = conversations_of(files)
    found = _chosen(reading.transcripts, searchable(given.get("conversation", "")))
    if len(reading.transcripts) + len(reading.refused) > 1:
        which = "" if found.name == str(found.number) else f" ({found.name})"
        title = f"{title}, conversation {found.number}{which}"
    return _carried(title, found)


def _readable(reading: Reading) -> Reading:
    """Return what was read. Raises InvalidValue if all of it was refused."""
    if not reading.transcripts:
        raise InvalidValue(f"{reading.refused[0].where}: {reading.refused[0].why}")
    return reading


def _carried(title: str, found: Transcript) -> CarriedConversation:
    messages = list(found.messages)
    _check_size(map(message_to_json, messages))  # before all of it is in memory once more
    return CarriedConversation(searchable(title), messages, messages_to_json(messages))


def _check_size(parts: Iterable[str]) -> None:
    """Refuse parts of a JSON list that no form can carry. Raises InvalidValue."""
    limit, size = messages_limit(), 1
    for part in parts:
        try:
            size += len(part.encode()) + 1
        except UnicodeEncodeError as error:
            raise InvalidValue("the messages cannot contain lone surrogates") from error
        if size > limit.size:
            raise InvalidValue(
                f"the conversation is larger than {limit}: import it, or use "
                f"{inspector_configuration().MANAGE} recall"
            )


def _chosen(known: Sequence[Transcript], wanted: str) -> Transcript:
    """Return the conversation with a name, or else with a number; by default the first."""
    named = [each for each in known if each.name == wanted]
    numbered = [each for each in known if str(each.number) == wanted]
    if found := [*named, *numbered] if wanted else known:
        return found[0]
    names = ", ".join(f"“{each.name}”" for each in known[:NAMED])
    raise InvalidValue(
        f"the file has no readable conversation “{wanted}”. It has {len(known):,}, such as {names}"
    )


# What is sent


def csv_file(columns: Sequence[str], rows: Rows, name: str) -> HttpResponse:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return _file(text.getvalue(), "text/csv; charset=utf-8", f"{name}.csv")


def json_file(rows: Rows, name: str) -> HttpResponse:
    return _file(json.dumps(rows, indent=2), "application/json", f"{name}.json")


def no_numbers(problem: str) -> HttpResponse:
    """Answer what was wrong, because the numbers would not be those that were asked for."""
    return HttpResponse(f"{sentence(problem)}\n", "text/plain; charset=utf-8", status=422)


def _file(content: str, type: str, name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{_plain(name)}"'}
    return HttpResponse(content, type, headers=headers)


def _cell(value: Any) -> Any:
    """A value for a spreadsheet: an apostrophe keeps text from being taken for a formula, which may
    begin with a full-width sign, too.
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value


def _plain(name: str) -> str:
    return "".join(
        char if char.isascii() and (char.isalnum() or char in "-._") else "_" for char in name
    )
