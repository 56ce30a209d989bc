"""Tables of the lab. They have numbers, which can be computed again, and names of policies, but no
text of messages.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from chatmemory.kept import KeptRow
from chatmemory.managers import TableManager


class Figures(models.Model):
    """The figures of a conversation for one question to the lab, such as a question with an unusual
    limit. `key` is a digest of the question.

    The figures are valid only for one `state` of the ledger; see `reads.state_of`.
    """

    pk = models.CompositePrimaryKey("memory_id", "key")
    memory = models.ForeignKey(
        "chatmemory.Memory",
        models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    key = models.CharField(max_length=32, help_text="digest of the question")
    state = models.CharField(max_length=64, help_text="head of the ledger, and its last step")
    figures = models.JSONField()
    computed_at = models.DateTimeField(default=timezone.now)

    objects = TableManager()

    class Meta:
        verbose_name_plural = "figures"
        indexes = [models.Index("key", "memory", name="lab_figures_by_question")]

    def __str__(self) -> str:
        return f"{self.memory_id} figures {self.key}"


class KeptCost(KeptRow):
    """What the prompts of a conversation cost at each provider's prices, in percent of sending
    everything. 121 means 21 % more.

    - `openai`: the cost at OpenAI's prices.
    - `openai_step`: the step since which this cost has been at least `figures.OVER` percent. Null
      if the cost is now below this percentage.

    The columns of Anthropic and Gemini have the same meaning, at the prices of these providers. All
    of these columns are null if the conversation has no policy that evicts messages, or fewer than
    three model calls.
    """

    openai = models.IntegerField(null=True)
    openai_step = models.BigIntegerField(null=True)
    anthropic = models.IntegerField(null=True)
    anthropic_step = models.BigIntegerField(null=True)
    gemini = models.IntegerField(null=True)
    gemini_step = models.BigIntegerField(null=True)

    class Meta:
        verbose_name = verbose_name_plural = "cost"
        indexes = [models.Index("kept_at", name="lab_cost_by_time")]
