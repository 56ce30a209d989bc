"""The table of causes that somebody muted on the overview."""

from __future__ import annotations

from django.db import models

from chatmemory.managers import TableManager


class MutedCause(models.Model):
    """A cause that somebody muted on the overview. It is shown again when 1.5 times as many
    conversations have it as when it was muted.
    """

    flag = models.CharField(max_length=64, primary_key=True)
    count = models.IntegerField(help_text="its conversations when it was muted")
    muted_by = models.CharField(max_length=255, blank=True)
    muted_at = models.DateTimeField()

    objects = TableManager()

    def __str__(self) -> str:
        return self.flag
