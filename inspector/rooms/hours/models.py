"""Tables of hourly figures: turns, prompts, cost and new problems of a conversation in each hour.

The only texts in the tables are names: of flags, rules, providers and models.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F

from chatmemory.kept import KeptPart, KeptRow
from chatmemory.managers import TableManager


class KeptHours(KeptRow):
    """How far the hourly figures of a conversation are computed: up to a step, and up to the
    recorded call with the number `call`. `content` is the state from which the figures of later
    steps are derived; see `deriving.State`.

    `said` counts the messages with a time, `untimed` those without. `provider` and `model` are
    those of the newest recorded call.
    """

    call = models.BigIntegerField(default=0, help_text="the number of the newest recorded call")
    said = models.BigIntegerField(default=0)
    untimed = models.BigIntegerField(default=0)
    last_hour = models.BigIntegerField(null=True)
    provider = models.CharField(max_length=64, blank=True)
    model = models.CharField(max_length=255, blank=True)

    class Meta:
        verbose_name = verbose_name_plural = "hours"
        indexes = [
            models.Index("kept_at", name="hours_by_time"),
            models.Index("provider", "model", name="hours_by_model"),
        ]


class Hour(KeptPart):
    """The figures of a conversation in one hour. `hour` is the start of the local hour, in seconds
    since 1970.

    - `after_eviction`: the turns after the first eviction of the conversation.
    - `after_compaction`: the turns after its first compaction.
    - `tokens`, `cost`: estimates for the prompts.
    - `call_tokens`, `call_cost`: the tokens of recorded calls, as providers counted them, and the
      cost of these tokens.
    - `cases`: the problems that began, as JSON pairs: the name of a flag, and a detail.

    A cost of 1,000 is the price of one input token.
    """

    key = "hour"

    pk = models.CompositePrimaryKey("memory_id", "hour")
    hour = models.BigIntegerField()
    turns = models.IntegerField(default=0)
    after_eviction = models.IntegerField(default=0)
    after_compaction = models.IntegerField(default=0)
    prompts = models.IntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    cost = models.BigIntegerField(default=0)
    calls = models.IntegerField(default=0, help_text="recorded calls with counts")
    call_tokens = models.BigIntegerField(default=0)
    call_cost = models.BigIntegerField(default=0)
    cases = models.TextField(default="", blank=True)

    class Meta:
        verbose_name = "hour"
        indexes = [models.Index(F("hour").desc(), "memory", name="hours_by_hour")]


class KeptFigures(models.Model):
    """The stored hourly figures of all conversations by one grouping. `split` has the version of
    the rules and the grouping, such as `5 tenant`. The figures were computed at `made_at`.

    The row of the grouping `fleet` has the values from which the figures of filtered lists are
    computed; see `figures.Fleet`.
    """

    split = models.CharField(max_length=300, primary_key=True)
    made_at = models.BigIntegerField(help_text="in microseconds since 1970")
    content = models.TextField()

    objects = TableManager()

    class Meta:
        verbose_name_plural = "figures"

    def __str__(self) -> str:
        return self.split
