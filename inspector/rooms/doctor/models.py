"""Tables of the doctor: the diagnosis of each conversation, and the providers in use."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from chatmemory.kept import KeptRow
from chatmemory.managers import TableManager


class KeptDiagnosis(KeptRow):
    """The stored diagnosis of a conversation's window (see `diagnosing`).

    The row also tells whether the limit was too small for a message or a turn, and which providers
    the messages come from. It has only numbers, and names of rules and providers.
    """

    problems = models.TextField(
        default="", help_text="what it is listed by, in commas: see `diagnosis.Mark`"
    )
    refused_by = models.IntegerField(default=0, help_text="the providers, as bits")
    mishandled_by = models.IntegerField(default=0, help_text="the providers, as bits")
    ill_at = models.BigIntegerField(null=True, help_text="since when it has a problem")
    oversized_step = models.BigIntegerField(
        null=True, help_text="the newest step whose message the window had no room for"
    )
    missed_step = models.BigIntegerField(
        null=True, help_text="the newest step whose message left in it"
    )

    seen = models.IntegerField(
        default=0, help_text="the providers that messages tell of, as bits: see `seen`"
    )
    needed_limit = models.BigIntegerField(
        null=True, help_text="what the largest recorded turn needs, where the limit is smaller"
    )
    short_at = models.BigIntegerField(null=True, help_text="since when the limit is smaller")

    class Meta:
        verbose_name = verbose_name_plural = "diagnosis"
        indexes = [
            models.Index("kept_at", name="doctor_by_time"),
            models.Index(
                F("ill_at").desc(),
                F("memory").desc(),
                condition=Q(ill_at__isnull=False),
                name="doctor_ill",
            ),
            models.Index("refused_by", condition=Q(refused_by__gt=0), name="doctor_refused"),
            models.Index(
                "oversized_step", condition=Q(oversized_step__isnull=False), name="doctor_oversized"
            ),
            models.Index(
                "missed_step", condition=Q(missed_step__isnull=False), name="doctor_missed"
            ),
            models.Index("seen", condition=Q(seen__gt=0), name="doctor_seen"),
            models.Index(
                "needed_limit", condition=Q(needed_limit__isnull=False), name="doctor_short"
            ),
        ]


class ProvidersInUse(models.Model):
    """The providers that people chose for the conversations whose ids begin with a prefix."""

    prefix = models.CharField(max_length=255, primary_key=True, blank=True)
    providers = models.JSONField(default=list, help_text='such as ["openai", "gemini:gemini-3"]')
    set_by = models.CharField(max_length=255, blank=True)
    set_at = models.DateTimeField()

    objects = TableManager()

    class Meta:
        verbose_name_plural = "providers in use"

    def __str__(self) -> str:
        return self.prefix
