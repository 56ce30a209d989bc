"""Reads the transcript files and folders that are named on a command line."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, NamedTuple

from chatmemory.exceptions import ChatMemoryError, InvalidValue, UnreadableTranscript
from chatmemory.formats import Refused, Transcript, readable_formats, stream_transcripts
from chatmemory.printing import Printer

ENDINGS = (".json", ".jsonl", ".ndjson")


class TranscriptFile(NamedTuple):
    """A transcript file to read.

    - `name`: the file name up to the first dot. For a file in a folder that the command line names,
      the names of subfolders come first: `a-b` for `runs/a/b.json` in the folder `runs`.
    - `is_in_folder`: True if the command line names a folder that contains the file, and not the
      file itself.
    """

    path: Path
    name: str
    is_in_folder: bool


def add_file_arguments(parser: ArgumentParser, nargs: Literal["*", "+"], *formats: str) -> None:
    """Add the arguments of a command that reads transcripts: the files and folders, and their
    format. `formats` are more names that `--format` accepts, besides "auto" and the known formats.
    """
    parser.add_argument(
        "files",
        nargs=nargs,
        metavar="FILE",
        type=Path,
        help="a JSON or JSON Lines file with one or more conversations, or a folder, "
        f"from which all files that end with {', '.join(ENDINGS)} are read, also in "
        "its folders",
    )
    parser.add_argument(
        "--format",
        default="auto",
        choices=["auto", *readable_formats(), *formats],
        help="the format of the files; default: auto, which detects the format of each file",
    )


def transcript_files(paths: Iterable[Path]) -> Iterator[TranscriptFile]:
    """Yield the files of `paths`, in this order. For a folder, yield the transcript files in it and
    in its subfolders, sorted by path.

    Raises InvalidValue for a folder without transcript files.
    """
    for path in paths:
        if not path.is_dir():
            yield TranscriptFile(path, path.name.partition(".")[0], is_in_folder=False)
            continue
        found = sorted(each for each in path.rglob("*") if each.suffix in ENDINGS)
        if not found:
            raise InvalidValue(
                f"{path}: the folder has no file that ends with {', '.join(ENDINGS)}"
            )
        for each in found:
            *folders, last = each.relative_to(path).parts
            name = "-".join([*folders, last.partition(".")[0]])
            yield TranscriptFile(each, name, is_in_folder=True)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a transcript file for a `with` block. Raises InvalidValue if the file cannot be opened,
    or if the block raises UnreadableTranscript.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidValue(f"{path}: {error.strerror}") from error
    try:
        with file:
            yield file
    except UnreadableTranscript as error:
        raise InvalidValue(f"{path}: {error}") from error


def transcripts(paths: Sequence[Path], format: str, printer: Printer) -> Iterator[Transcript]:
    """Yield the conversations of files and folders. A conversation or file that cannot be read is
    left out, and reported with the reason.

    Raises InvalidValue if only one file is named and this file cannot be read, or if a folder has
    no transcript file.
    """
    return (each for _, each in named_transcripts(paths, format, printer))


def named_transcripts(
    paths: Sequence[Path], format: str, printer: Printer
) -> Iterator[tuple[str, Transcript]]:
    """Yield the conversations of files and folders, each with its name. A conversation without a
    name gets the name of its file, such as `runs`. Unless it is the first conversation in the file,
    its number in the file is added: `runs-2`.

    A conversation or file that cannot be read is left out, and reported with the reason. Raises
    InvalidValue if only one file is named and this file cannot be read, or if a folder has no
    transcript file.
    """
    files = [*transcript_files(paths)]
    for file in files:
        try:
            for each in transcripts_of(file.path, format, printer):
                usual = file.name if each.number == 1 else f"{file.name}-{each.number}"
                own = each.name if each.name != str(each.number) else None
                yield own or usual, each
        except ChatMemoryError as error:
            if len(files) == 1 and not file.is_in_folder:
                raise
            printer.left_out(str(error))


def transcripts_of(path: Path, format: str, printer: Printer) -> Iterator[Transcript]:
    """Yield the conversations of one file. A conversation that cannot be read is reported and left
    out. An empty conversation is left out. Raises InvalidValue if the file cannot be read.
    """
    with opened(path) as file:
        for each in stream_transcripts(file, format).conversations:
            if isinstance(each, Refused) and each.is_empty:
                continue
            if isinstance(each, Refused):
                printer.left_out(f"{each.where}: {each.why}")
            else:
                yield each
