"""The table of trials: drafts and limits that people try on conversations."""

from __future__ import annotations

from django.db import models

from chatmemory.managers import TableManager


class Trial(models.Model):
    """Draft messages and a limit that somebody tries on a conversation, without changing the
    conversation.

    A URL with the `key` always shows the same trial. Therefore only `tried_at` changes in a stored
    trial: the time when somebody last stored the trial.
    """

    pk = models.CompositePrimaryKey("memory_id", "key")
    memory = models.ForeignKey(
        "chatmemory.Memory", models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    key = models.CharField(max_length=16, help_text="digest of the drafts and the limit")
    drafts = models.TextField(help_text="a JSON list of messages")
    limit = models.BigIntegerField(null=True, blank=True)
    tried_by = models.CharField(max_length=255, blank=True)
    tried_at = models.DateTimeField()

    objects = TableManager()

    class Meta:
        indexes = [
            models.Index("tried_at", name="trial_by_age"),
            models.Index("tried_by", "tried_at", name="trial_by_person"),
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} trial {self.key}"
