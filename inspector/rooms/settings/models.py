"""The table of muted causes, which are hidden in a folded part of the overview."""

from __future__ import annotations

from django.db import models

from chatmemory.managers import TableManager


class MutedCause(models.Model):
    """A cause (a reason for attention, such as facts that left memory) that somebody muted on the
    overview. The cause stays folded until its number of conversations has grown by half.
    """

    flag = models.CharField(max_length=64, primary_key=True)
    count = models.IntegerField(help_text="its conversations when it was muted")
    muted_by = models.CharField(max_length=255, blank=True)
    muted_at = models.DateTimeField()

    objects = TableManager()

    def __str__(self) -> str:
        return self.flag
