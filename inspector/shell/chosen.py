"""Reads from a URL which conversations are chosen. The module is for pages about many
conversations, such as the lab.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self
from urllib.parse import quote, unquote

from django.db.models import Q

from chatmemory.flags import flag_named, flags, today
from chatmemory.reading.finding import MemoryFilter
from inspector.forms.fields import number_in_text, searchable

DIGITS = 9
IDS_MAX = 50  # conversations that a URL names by their ids


@dataclass(frozen=True)
class ChosenConversations:
    """A filter of conversations from the parameters of a URL. An empty value does not filter.

    - `q`: words to search.
    - `label`: a label.
    - `prefix`: the beginning of the ID.
    - `since`: a date. The conversation was active on this day or later.
    - `flagged`: the name of a flag.
    - `ids`: IDs with commas between them.
    - `problem`: what is wrong in the URL, or "".
    """

    q: str = ""
    label: str = ""
    prefix: str = ""
    since: str = ""
    flagged: str = ""
    ids: str = ""
    problem: str = ""

    @classmethod
    def read(cls, parameters: Mapping[str, str]) -> Self:
        """Read the parameters of a URL. Invalid parameters are left out."""
        texts = {name: searchable(parameters.get(name, "")) for name in FIELDS}
        texts["flagged"] = today(texts["flagged"])
        names, problem = [flag.name for flag in flags()], ""
        if texts["flagged"] and texts["flagged"] not in names:
            texts["flagged"], problem = "", f"flagged must be {' or '.join(names)}"
        if texts["since"] and date_in(texts["since"]) is None:
            texts["since"], problem = "", "A date must be written like 2026-01-31."
        texts["ids"] = parameters.get("ids", "")
        if len(ids_in(texts["ids"])) > IDS_MAX:
            texts["ids"], problem = "", f"at most {IDS_MAX:,} conversations can be chosen by ID"
        return cls(**texts, problem=problem)

    @property
    def which(self) -> MemoryFilter:
        return MemoryFilter(
            search=self.q,
            label=self.label,
            id_prefix=self.prefix,
            active_since=date_in(self.since),
            flag=flag_named(self.flagged) if self.flagged else None,
            also=Q(id__in=ids_in(self.ids)) if self.ids else None,
        )

    @property
    def is_all(self) -> bool:
        return not any(getattr(self, name) for name in FIELDS)

    @property
    def words(self) -> str:
        """The filter in words, such as `with the label plan:pro`; `of this site` without a filter.
        The words follow the word "conversations".
        """
        parts = [
            self.q and f"that match “{self.q}”",
            self.label and f"with the label {self.label}",
            self.prefix and f"with IDs that begin with {self.prefix}",
            self.since and f"active since {self.since}",
            self.flagged and f"flagged “{flag_named(self.flagged).words}”",
            self.ids and "chosen by ID",
        ]
        return ", ".join(filter(None, parts)) or "of this site"


FIELDS = ("q", "label", "prefix", "since", "flagged", "ids")


def text_of_ids(ids: Iterable[str]) -> str:
    """Return IDs as the URL parameter `ids`: separated by commas. A comma within an ID is
    escaped.
    """
    return ",".join(quote(each, safe="") for each in ids)


def ids_in(text: str) -> list[str]:
    """Return the IDs in the URL parameter `ids`; see `text_of_ids`."""
    return [searchable(unquote(each)) for each in text.split(",") if each]


def date_in(text: str) -> datetime | None:
    """Return the start of a day such as `2026-01-31`, in UTC. Return None for any other text."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return None


def wrong_number(parameters: Mapping[str, str], names: Iterable[str]) -> str:
    """Return a sentence about the first of the parameters `names` that is not a valid number; "" if
    all are valid.
    """
    for name in names:
        if parameters.get(name) and number_in_text(parameters[name], DIGITS) is None:
            return f"{name} must be a whole number with at most {DIGITS} digits"
    return ""
