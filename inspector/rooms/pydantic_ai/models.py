"""Tables for what Pydantic AI's store needs to know of a conversation besides its messages."""

from __future__ import annotations

from django.db import models

from chatmemory.managers import TableManager


class SavedConversation(models.Model):
    """Pydantic AI's data on a conversation as JSON (`content`). For queries, the other columns
    repeat values of the JSON.
    """

    memory = models.OneToOneField(
        "chatmemory.Memory", models.CASCADE, primary_key=True, db_constraint=False
    )
    revision = models.CharField(max_length=255)
    head = models.CharField(max_length=255, null=True, help_text="id of the newest entry")
    scope = models.TextField(null=True)
    saved_at = models.BigIntegerField(help_text="in microseconds since 1970")
    content = models.TextField(help_text="JSON of the ConversationRecord")

    objects = TableManager()

    class Meta:
        indexes = [models.Index(models.F("saved_at").desc(), name="saved_conversation_by_time")]

    def __str__(self) -> str:
        return str(self.pk)


class SavedEntry(models.Model):
    """An entry of Pydantic AI's log: one message in Pydantic AI's format. In the history, an entry
    can be several messages, or none.

    - `entry`, `parent`: the ID of this entry, and the ID of the previous entry. `parent` is None
      for the first entry.
    - `first_seq`, `last_seq`: the seqs of the entry's first and last message in the history. For an
      entry without messages in the history, `last_seq` is lower than `first_seq`.
    """

    pk = models.CompositePrimaryKey("memory_id", "entry")
    memory = models.ForeignKey(
        "chatmemory.Memory", models.CASCADE, related_name="+", db_index=False, db_constraint=False
    )
    entry = models.CharField(max_length=255)
    parent = models.CharField(max_length=255, null=True)
    first_seq = models.BigIntegerField(help_text="seq of its first message")
    last_seq = models.BigIntegerField(help_text="seq of its last one; lower if it has none")
    instructions = models.TextField(null=True, help_text="the agent's, which are no message")
    content = models.TextField(
        null=True, help_text="JSON of the message, if its rows do not tell all of it"
    )

    objects = TableManager()

    class Meta:
        indexes = [models.Index("entry", name="saved_entry_by_id")]

    def __str__(self) -> str:
        return f"{self.memory_id} {self.entry}"
