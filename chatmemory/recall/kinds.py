"""The kinds of incidents, and the words for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from chatmemory.exceptions import InvalidValue


class IncidentKind(StrEnum):
    """The kind of an incident: how something that had left memory came up again. Of several kinds
    that apply to a message, the first in this list counts.

    - USER_REPEATED: a user repeats a fact.
    - CALL_REPEATED: a tool is called again for a result that had left memory.
    - USER_SUPPLIED: a user gives a fact that only a tool had given.
    - USED_UNSEEN: the assistant uses a fact that is not in memory.
    """

    USER_REPEATED = "user_repeated"
    CALL_REPEATED = "call_repeated"
    USER_SUPPLIED = "user_supplied"
    USED_UNSEEN = "used_unseen"


@dataclass(frozen=True)
class KindWords:
    """The words for a kind of incident.

    - `title`: the name of the kind.
    - `happened`: follows the name of a fact or tool: `was said again after it had left memory`.
    - `to_several`: follows several names; "" if `happened` fits.
    - `short`: labels the message that repeats the fact, such as `repeated by the user`.
    - `repeated` (a property): `short` without "by the user", as in `repeated in #45`.
    """

    title: str
    happened: str
    short: str
    to_several: str = ""

    @property
    def repeated(self) -> str:
        return self.short.removesuffix(" by the user")


WORDS: Mapping[IncidentKind, KindWords] = {
    IncidentKind.USER_REPEATED: KindWords(
        "Repeated by the user",
        "was repeated by the user after it had left memory",
        "repeated by the user",
        "were repeated by the user after they had left memory",
    ),
    IncidentKind.CALL_REPEATED: KindWords("Called again", "was called again", "called again"),
    IncidentKind.USER_SUPPLIED: KindWords(
        "Supplied by the user",
        "was supplied by the user after it had left memory",
        "supplied by the user",
        "were supplied by the user after they had left memory",
    ),
    IncidentKind.USED_UNSEEN: KindWords(
        "Used without a recorded mention",
        "was used with no recorded mention in memory",
        "used",
        "were used with no recorded mention in memory",
    ),
}
# Of facts that the user repeated because the assistant asked for it, or as the user says
FORCED = KindWords(
    "Users repeated themselves", "had to be repeated by the user", "repeated by the user"
)

# The names of the release before, which are still accepted
FORMER = {
    "said_again": IncidentKind.USER_REPEATED,
    "fetched_again": IncidentKind.CALL_REPEATED,
    "used": IncidentKind.USED_UNSEEN,
}


def words_of_kind(kind: IncidentKind, is_forced: bool) -> KindWords:
    """Return the words for an incident of this kind. `is_forced` means that the assistant asked the
    user for the fact, or that the user said it was a repetition.
    """
    return FORCED if is_forced else WORDS[kind]


def kind_named(name: str) -> IncidentKind:
    """Return the kind with this name. Names of the previous release are known, too. Raises
    InvalidValue for an unknown name.
    """
    try:
        return FORMER.get(name) or IncidentKind(name)
    except ValueError:
        raise InvalidValue(f"{name!r} is none of {', '.join(IncidentKind)}") from None
