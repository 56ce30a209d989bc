"""The table of causes that somebody muted on the overview."""

from __future__ import annotations

from django.db import models

from chatmemory.managers import TableManager


class MutedCause(models.Model):
    """A cause that somebody muted on the overview. The overview shows the cause again when its
    number of conversations has grown by half.

    `count` is the number of conversations when the cause was muted; 0 for a cause hidden by
    `dismiss`.
    """

    flag = models.CharField(max_length=64, primary_key=True)
    count = models.IntegerField(help_text="its conversations when it was muted")
    muted_by = models.CharField(max_length=255, blank=True)
    muted_at = models.DateTimeField()

    objects = TableManager()

    def __str__(self) -> str:
        return self.flag
