"""The providers that a site uses. People choose them on a page, or the setting
CHATMEMORY["PROVIDERS"] names them.

A choice is for all conversations, or for conversations whose IDs begin with a prefix. If several
prefixes fit an ID, the longest prefix decides. The setting replaces all choices made on the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from asgiref.local import Local
from django.db.models import Q
from django.utils import timezone

from chatmemory import database
from chatmemory.conf import configuration
from chatmemory.exceptions import InvalidValue
from chatmemory.ledger.transaction import audit
from chatmemory.ledger.validation import ID_LENGTH, check_actor, check_text
from chatmemory.lint.catalog import RULES
from chatmemory.tables import Table
from inspector.rooms.doctor.diagnosis import MARKS, mark
from inspector.rooms.doctor.models import ProvidersInUse
from inspector.rooms.doctor.providers import BITS
from inspector.rooms.doctor.using import ALL, InUse, in_use

NONE = Q(id="")  # no conversation has an empty id


@dataclass(frozen=True)
class Choice:
    """The providers in use (`use`) for conversations whose IDs begin with `prefix`.

    `set_by` is the person who chose the providers on the page, and `set_at` the time. If the
    setting names the providers, `set_by` is "" and `set_at` is None.
    """

    prefix: str
    use: InUse
    set_by: str = ""
    set_at: datetime | None = None


@dataclass(frozen=True)
class Choices:
    """The choices of providers, by prefix of conversation IDs. `fixed` means that they come from
    the setting, and cannot be changed on the page.
    """

    by_prefix: Mapping[str, Choice]
    fixed: bool = False

    @property
    def is_made(self) -> bool:
        return bool(self.by_prefix)

    def of(self, memory_id: str) -> InUse:
        """Return the providers in use for a conversation: those of the longest prefix that fits the
        ID, or none if no prefix fits. While nobody has chosen, return all providers.
        """
        prefixes = [prefix for prefix in self.by_prefix if memory_id.startswith(prefix)]
        return self.by_prefix[max(prefixes, key=len)].use if prefixes else self._unset

    @property
    def _unset(self) -> InUse:
        """The providers in use for a conversation whose ID fits no choice: none. While nobody has
        made any choice, all providers.
        """
        return InUse({}) if self.is_made else ALL

    @property
    def everywhere(self) -> InUse:
        """The providers that are in use for at least one conversation, each with all models that
        are in use.
        """
        if not self.is_made:
            return ALL
        uses = [choice.use for choice in self.by_prefix.values()]
        return in_use(dict.fromkeys(each for use in uses for each in use.written()))

    def naming(self, provider: str) -> Choices:
        """Return choices as if only `provider` were in use, for all conversations. "" returns these
        choices unchanged.

        `provider` may name a model, too (`openai:MODEL`). Without a model, the models in use for
        this provider stay the same. Raises InvalidValue for an unknown provider or a too long name
        of a model.
        """
        if not provider:
            return self
        use = in_use([provider])
        (name,) = use.providers
        known = use if use.models[name] else self.everywhere.only(name)
        return Choices({"": Choice("", InUse(known.models))})

    def where(self, rule: str = "", severities: str = "!") -> Q:
        """Return a database condition for conversations that have a problem with a provider in use.
        With `rule`, only problems with this rule count.

        `severities` has the signs of the problems that count: `!` for rejected, `~` for mishandled.
        """
        if not self.is_made:
            return _minded(ALL, rule, severities)
        parts = (
            self._at(prefix) & _minded(choice.use, rule, severities)
            for prefix, choice in self.by_prefix.items()
        )
        return reduce(or_, parts)

    def _at(self, prefix: str) -> Q:
        """Return the condition for the conversations to which the choice of a prefix applies."""
        condition = Q(id__startswith=prefix) if prefix else Q()
        for other in self.by_prefix:
            if other != prefix and other.startswith(prefix):
                condition &= ~Q(id__startswith=other)
        return condition


def _minded(use: InUse, rule: str, severities: str) -> Q:
    """Return the condition for windows with a problem for these providers. With a `rule`, only
    problems with this rule count.
    """
    found = NONE
    if not rule:
        bits = sum(BITS[name] for name in use.models)
        found |= _with_bits("refused_by", bits)
    marks = [
        mark(name, rule, severity)
        for name in use.models
        for severity, sign in MARKS.items()
        if rule and sign in severities
    ]
    if rule and not RULES[rule].laws:
        marks.append(f":{rule}~")
    marks += [
        mark(name, each, "conditional")
        for name in use.models
        for each in use.refusing(name)
        if rule in ("", each)
    ]
    for each in marks:
        found |= Q(keptdiagnosis__problems__contains=f",{each},")
    return found


def _with_bits(column: str, bits: int) -> Q:
    every = (1 << len(BITS)) - 1
    if bits == every:
        return Q(**{f"keptdiagnosis__{column}__gt": 0})
    numbers = [number for number in range(every + 1) if number & bits]
    return Q(**{f"keptdiagnosis__{column}__in": numbers})


_CHOSEN = Table(ProvidersInUse)  # each page of a conversation reads it
_request = Local()  # holds the choices that were read for the current request


def remember(**_: object) -> None:
    """Cache the choices for the request that begins now, so that they are read only once. Receives
    the signal `request_started`.
    """
    _request.choices = None


def forget(**_: object) -> None:
    """Drop the choices that were cached for the request that ends now. Receives the signal
    `request_finished`.
    """
    if hasattr(_request, "choices"):
        del _request.choices


def choices() -> Choices:
    """Return the choices of providers, cached during a request. Raises InvalidValue for unknown
    providers in the setting.
    """
    if not hasattr(_request, "choices"):
        return _choices()
    if _request.choices is None:
        _request.choices = _choices()
    found: Choices = _request.choices
    return found


def _choices() -> Choices:
    setting: Any = configuration().PROVIDERS  # a list, or a list for each beginning
    if setting is not None:
        by_prefix = setting if isinstance(setting, Mapping) else {"": setting}
        found = {prefix: Choice(prefix, in_use(names)) for prefix, names in by_prefix.items()}
        return Choices(found, fixed=True)
    return Choices(
        {row.prefix: _choice(row) for row in _CHOSEN.read_all("TRUE ORDER BY prefix", {})}
    )


def _choice(row: ProvidersInUse) -> Choice:
    return Choice(row.prefix, in_use(row.providers), row.set_by, row.set_at)


def choose_providers(prefix: str, providers: Sequence[str], actor: str = "") -> None:
    """Store which providers are in use for conversations whose IDs begin with a prefix. Raises
    UnstorableText. Raises InvalidValue for an unknown provider, or if a setting names the
    providers.
    """
    _check(prefix, actor)
    use = in_use(providers)
    with database.atomic():
        ProvidersInUse(
            prefix=prefix, providers=use.written(), set_by=actor, set_at=timezone.now()
        ).save()
        _audit(f"use {', '.join(use.written()) or 'no provider'} for {prefix!r}", prefix, actor)


def forget_providers(prefix: str, actor: str = "") -> None:
    """Delete the providers that were chosen for an ID prefix, if any were. Raises UnstorableText,
    and InvalidValue if a setting names the providers, or if the prefix is too long.
    """
    _check(prefix, actor)
    with database.atomic():
        if ProvidersInUse.objects.filter(prefix=prefix).delete()[0]:
            _audit(f"choose no providers for {prefix!r}", prefix, actor)


def _check(prefix: str, actor: str) -> None:
    if configuration().PROVIDERS is not None:
        raise InvalidValue(
            'the setting CHATMEMORY["PROVIDERS"] decides which providers are in use: change the '
            "setting instead"
        )
    if len(prefix) > ID_LENGTH:
        raise InvalidValue(
            f"a prefix can have at most {ID_LENGTH} characters, but has {len(prefix):,}"
        )
    check_text(prefix, "a prefix")
    check_actor(actor)
    if hasattr(_request, "choices"):
        _request.choices = None


def _audit(words: str, prefix: str, actor: str) -> None:
    audit(words, action="choose_providers", actor=actor, prefix=prefix)
