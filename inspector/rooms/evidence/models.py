"""Tables of derived data: the incidents of each conversation, and the terms that its summaries
lost.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from chatmemory.kept import KeptRow

_LOSING = Q(terms_lost__gt=0)
_HAVING = Q(newest_at__isnull=False)


class KeptIncidents(KeptRow):
    """The stored incidents of a conversation: seqs, steps and counts, but no texts. The module
    `incidents` reads these rows.

    The columns `newest_…` are about the newest incident in which a user had to repeat a fact.
    """

    forced = models.IntegerField(default=0, help_text="incidents that the assistant forced")
    user_repeated = models.IntegerField(default=0)
    call_repeated = models.IntegerField(default=0)
    user_supplied = models.IntegerField(default=0)
    used_unseen = models.IntegerField(default=0)
    newest_seq = models.BigIntegerField(null=True)
    newest_step = models.BigIntegerField(null=True)
    newest_at = models.BigIntegerField(null=True)

    class Meta:
        verbose_name = verbose_name_plural = "incidents"
        indexes = [
            models.Index("kept_at", name="evidence_by_time"),
            models.Index(F("newest_at").desc(), condition=_HAVING, name="evidence_newest"),
        ]


class KeptCompactions(KeptRow):
    """The stored compactions of a conversation and the terms that their summaries lost, which the
    module `compactions` reads.

    Terms are stored as digests (see `corpus`). The only texts are names of triggers and
    summarizers.
    """

    compacted = models.IntegerField(default=0, help_text="how many compactions it has rows of")
    terms_lost = models.IntegerField(
        default=0, help_text="exact terms that were told, needed, and lost by summaries"
    )
    lost = models.TextField(default="[]", help_text="JSON: the digests of these terms")
    mentioned = models.TextField(
        default="", help_text="the digests of the exact terms of all messages, as base64"
    )

    class Meta:
        verbose_name = verbose_name_plural = "losses of compactions"
        indexes = [
            models.Index("kept_at", name="evidence_lost_by_time"),
            models.Index("memory", condition=_LOSING, name="evidence_losing"),
        ]
