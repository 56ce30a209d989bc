"""The tables of what is derived from ledgers and kept: one row a conversation in each.

A `chatmemory.keeper.Keeper` makes the rows. They are no part of a conversation: any of them can be
made again. So that a row which somebody altered breaks no list, its columns are whole numbers and
texts only; times are microseconds since 1970, and whatever has a structure is JSON in `content`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import models
from django.db.models import F, Q

from chatmemory.core.exceptions import CorruptRow
from chatmemory.managers import TableManager

_ILL = Q(ill_at__isnull=False)
_REFUSED = Q(refused_by__gt=0)
_OVERSIZED = Q(oversized_step__isnull=False)
_MISSED = Q(missed_step__isnull=False)
_LOSING = Q(terms_lost__gt=0)
_HAVING = Q(newest_at__isnull=False)


class KeptRow(models.Model):
    """What is derived from the ledger of one conversation.

    The conversation is known up to `step`, by the rules of a `version` of the keeper: another
    version makes the row stale. All columns but `kept_at` are a function of the ledger alone.
    """

    memory = models.OneToOneField(
        "chatmemory.Memory", models.CASCADE, primary_key=True, db_constraint=False
    )
    step = models.BigIntegerField()
    version = models.CharField(max_length=32)
    kept_at = models.BigIntegerField(help_text="when it was stored, in microseconds since 1970")
    content = models.TextField(default="[]", help_text="JSON, see the keeper")

    objects = TableManager()

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.pk} {self._meta.verbose_name}"

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """Yield what the JSON is. If the block cannot read it, which an altered row may cause,
        CorruptRow is raised, which names the row.
        """
        try:
            yield json.loads(self.content)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise CorruptRow(
                f"the {self._meta.verbose_name} kept of {self.pk!r} cannot be read: "
                "manage.py verify_memories makes them again"
            ) from error


class KeptDiagnosis(KeptRow):
    """Which rules of providers the window breaks, as `queries.diagnosis` reads it, and what the
    limit had no room for lately: numbers, and the names of rules and providers.
    """

    problems = models.CharField(
        max_length=1024, default="", help_text="the rules it is listed by, in commas"
    )
    refused_by = models.IntegerField(default=0, help_text="the providers, as bits")
    ill_at = models.BigIntegerField(null=True, help_text="since when it has a problem")
    waiting_call = models.BigIntegerField(
        null=True, help_text="seq of the tool call at the window's end that awaits results"
    )
    oversized_step = models.BigIntegerField(
        null=True, help_text="the newest step whose message the window had no room for"
    )
    missed_step = models.BigIntegerField(
        null=True, help_text="the newest step whose message left in it"
    )

    class Meta:
        verbose_name = verbose_name_plural = "diagnosis"
        indexes = [
            models.Index("kept_at", name="diagnosis_by_time"),
            models.Index(
                F("ill_at").desc(), F("memory").desc(), condition=_ILL, name="diagnosis_ill"
            ),
            models.Index("refused_by", condition=_REFUSED, name="diagnosis_refused"),
            models.Index("oversized_step", condition=_OVERSIZED, name="diagnosis_oversized"),
            models.Index("missed_step", condition=_MISSED, name="diagnosis_missed"),
        ]


class KeptIncidents(KeptRow):
    """The incidents of a conversation, as `queries.incidents` reads them; only numbers.

    The newest is that by which a user had to say something again.
    """

    forced = models.IntegerField(default=0, help_text="incidents that the assistant forced")
    user_repeated = models.IntegerField(default=0)
    call_repeated = models.IntegerField(default=0)
    user_supplied = models.IntegerField(default=0)
    used_unseen = models.IntegerField(default=0)
    newest_step = models.BigIntegerField(null=True)
    newest_at = models.BigIntegerField(null=True)

    class Meta:
        verbose_name = verbose_name_plural = "incidents"
        indexes = [
            models.Index("kept_at", name="incidents_by_time"),
            models.Index(F("newest_at").desc(), condition=_HAVING, name="incidents_newest"),
        ]


class KeptCompactions(KeptRow):
    """What the compactions of a conversation lost, as `queries.compactions` reads it: numbers, with
    the names of triggers and summarizers. Terms are digests, see `queries.corpus`.
    """

    compacted = models.IntegerField(default=0, help_text="how many compactions it has rows of")
    terms_lost = models.IntegerField(
        default=0, help_text="exact terms that were told, needed, and lost by summaries"
    )
    lost = models.TextField(default="[]", help_text="JSON: the digests of these terms")
    mentioned = models.TextField(default="", help_text="the digests of all terms, as base64")

    class Meta:
        verbose_name = verbose_name_plural = "losses of compactions"
        indexes = [
            models.Index("kept_at", name="compactions_by_time"),
            models.Index("memory", condition=_LOSING, name="compactions_losing"),
        ]
