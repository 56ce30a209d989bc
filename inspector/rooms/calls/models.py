"""Tables of model calls: all data of calls except for the messages that are in the ledger."""

from __future__ import annotations

from django.db import models
from django.db.models import F

from chatmemory.managers import TableManager
from inspector.rooms.calls.call import Source, Usage


class _OfConversation(models.Model):
    """A row of a conversation. It is deleted with the conversation."""

    memory = models.ForeignKey(
        "chatmemory.Memory",
        models.CASCADE,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )

    objects: TableManager = TableManager()  # type: ignore[type-arg]  # not generic at run time

    class Meta:
        abstract = True


class CallManager(TableManager):  # type: ignore[type-arg]  # not generic at run time
    """Manages the rows of model calls."""

    def without_bodies(self) -> models.QuerySet[ModelCall]:
        """Return calls without their large columns `difference` and `response`. Django reads such a
        column when it is used.
        """
        return self.defer("difference", "response")


class ModelCall(_OfConversation):
    """A stored model call of a conversation.

    Its messages are stored in one of three ways:

    - If calls decide the memory of the conversation, the messages are the window after `step`. The
      window after `answer_step` also has the answer.
    - If calls do not decide, `places` refers to the messages (see the module `places`).
    - Messages that could not be stored are only in `difference`. Then `step` is None, and `places`
      is "".

    Other columns:

    - `difference` is the patch (see `patches`) from the call's messages, rendered in `format`, to
      the request.
    - `response` has the parts of the provider's response that are not in the stored messages of the
      answer.
    - `style` names the way in which the JSON of the request was written, such as `compact`. It is
      "" if unknown.
    - `tools` are the digests of the call's tools, in order.
    """

    pk = models.CompositePrimaryKey("memory_id", "n")
    n = models.BigIntegerField()
    key = models.CharField(max_length=32, help_text="digest of what names the call for ever")
    answer_key = models.CharField(
        max_length=32, blank=True, default="", help_text="digest of what names its answer for ever"
    )
    source = models.CharField(max_length=16, choices=[(s.value, s.value) for s in Source])
    format = models.CharField(max_length=32)
    provider = models.CharField(max_length=64, blank=True)
    model = models.CharField(max_length=255, blank=True)
    at = models.DateTimeField()
    duration = models.FloatField(null=True, help_text="seconds")
    is_exact = models.BooleanField(default=True)

    step = models.BigIntegerField(null=True)
    places = models.TextField(default="", blank=True, help_text="of its messages, without a step")
    removed = models.IntegerField(
        default=0, help_text="how many secrets were removed from the body"
    )
    answer_step = models.BigIntegerField(null=True)
    difference = models.TextField(default="", blank=True)
    style = models.CharField(max_length=16, blank=True)
    tools = models.TextField(default="[]")
    response = models.TextField(default="", blank=True)
    headers = models.TextField(default="{}")

    # Tokens as the provider counted them; None for counts that it did not send
    input = models.BigIntegerField(null=True)
    cached = models.BigIntegerField(null=True)
    written = models.BigIntegerField(null=True)
    output = models.BigIntegerField(null=True)
    reasoning = models.BigIntegerField(null=True)
    counted = models.BigIntegerField(default=0, help_text="of messages and tools, counted here")
    is_countable = models.BooleanField(default=True, help_text="no image and no other media")
    # The comparison with the call that began before this one; see `comparing`
    shared = models.BigIntegerField(null=True, help_text="tokens of the common beginning")
    again = models.BigIntegerField(
        default=0, help_text="tokens that were sent again after a prefix change"
    )
    is_broken = models.BooleanField(default=False)
    finish = models.CharField(max_length=64, blank=True)
    error = models.TextField(default="", blank=True)

    objects = CallManager()

    class Meta:
        verbose_name = "call"
        constraints = [models.UniqueConstraint("memory", "key", name="calls_once")]
        indexes = [
            models.Index("memory", "at", "n", name="calls_by_start"),
            models.Index("key", name="calls_by_key"),
            models.Index("answer_key", name="calls_by_answer"),
            models.Index("model", F("at").desc(), name="calls_of_model"),
            models.Index(F("at").desc(), F("memory").desc(), F("n").desc(), name="calls_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} call {self.n}"

    @property
    def has_list(self) -> bool:
        """Whether the messages of this call are stored: in the ledger as the window after `step`,
        or as a list of references in `places`.
        """
        return self.step is not None or bool(self.places)

    @property
    def usage(self) -> Usage:
        return Usage(self.input, self.cached, self.written, self.output, self.reasoning)


class ToolDefinition(models.Model):
    """The definition of a tool, stored once for all conversations that use it. It is deleted when
    no conversation uses it any more.
    """

    digest = models.CharField(max_length=32, primary_key=True)
    name = models.CharField(max_length=255)
    definition = models.TextField(help_text="JSON as it was sent")

    objects = TableManager()

    class Meta:
        verbose_name = "definition of a tool"

    def __str__(self) -> str:
        return f"tool {self.name}"


class CallTool(_OfConversation):
    """A tool that the model was offered in calls of a conversation.

    If `is_redacted`, the definition of the tool is no longer shown in this conversation. Other
    conversations may still show it.
    """

    pk = models.CompositePrimaryKey("memory_id", "digest")
    digest = models.CharField(max_length=32, help_text="of the definition")
    tokens = models.IntegerField()
    is_redacted = models.BooleanField(default=False)

    class Meta:
        verbose_name = "tool of calls"
        indexes = [models.Index("digest", name="calls_tools")]

    def __str__(self) -> str:
        return f"{self.memory_id} tool {self.digest}"


class CallMessage(_OfConversation):
    """A message that is not in history, but in the request of at least one model call.

    The message is stored only once, even if many calls of the conversation sent it. The columns are
    like those of `chatmemory.models.Message`.
    """

    pk = models.CompositePrimaryKey("memory_id", "n")
    n = models.BigIntegerField()
    digest = models.CharField(max_length=32, blank=True, help_text="empty once it is redacted")
    text = models.TextField()
    frame = models.TextField()
    attributes = models.TextField(null=True, blank=True)
    tokens = models.IntegerField()

    class Meta:
        verbose_name = "message of calls"
        indexes = [models.Index("memory", "digest", name="calls_messages")]

    def __str__(self) -> str:
        return f"{self.memory_id} call message {self.n}"

    @property
    def seq(self) -> int:
        """The number that stands for this message in the message list of a call. It is below 0
        (`-n`), because the message is not in history.
        """
        return -self.n


class KnownMessage(_OfConversation):
    """A digest of the content of a message in history. By these digests, the messages in a call's
    request are matched with the history.
    """

    pk = models.CompositePrimaryKey("memory_id", "seq")
    seq = models.BigIntegerField()
    digest = models.CharField(max_length=16, help_text="in hexadecimal")

    class Meta:
        verbose_name = "known message"
        indexes = [models.Index("memory", "digest", "seq", name="calls_known")]

    def __str__(self) -> str:
        return f"{self.memory_id} #{self.seq} by content"


class CallRun(models.Model):
    """Values about all calls of one conversation.

    - `digests` identify the messages of the newest call and its answer.
    - `last_step` is the last step that a call wrote.
    - `is_own` means that calls began the conversation. If something other than calls changes the
      memory, the next call sets `is_own` to False.
    - `own_messages` is the number `n` of the newest `CallMessage`; 0 if no call sent such a
      message.
    - Messages of the history up to the seq `known_seq` have a `KnownMessage`, except redacted
      messages.
    """

    memory = models.OneToOneField(
        "chatmemory.Memory", models.CASCADE, primary_key=True, db_constraint=False, related_name="+"
    )
    prefix = models.CharField(max_length=255, blank=True, help_text="of the token that sent them")
    digests = models.BinaryField(default=b"")
    calls = models.BigIntegerField(default=0)
    is_own = models.BooleanField(default=True)
    last_step = models.BigIntegerField(default=0)
    own_messages = models.BigIntegerField(default=0)
    known_seq = models.BigIntegerField(default=0)
    changed_at = models.DateTimeField(null=True, help_text="when its newest call was stored")

    objects = TableManager()

    class Meta:
        verbose_name = "run of calls"
        indexes = [models.Index("changed_at", name="calls_runs_by_change")]

    def __str__(self) -> str:
        return f"{self.memory_id} run"


class CallEnd(_OfConversation):
    """A digest by which a later call finds the conversation that it continues.

    A conversation has up to three of these digests, all from its newest call: those of the first
    message and of the last two. The answer counts as a message of the call, but system messages do
    not count.
    """

    pk = models.CompositePrimaryKey("memory_id", "digest")
    digest = models.CharField(max_length=16, help_text="in hexadecimal")
    prefix = models.CharField(max_length=255, blank=True)
    at = models.DateTimeField()

    class Meta:
        verbose_name = "end of a run"
        indexes = [models.Index("prefix", "digest", F("at").desc(), name="calls_ends")]

    def __str__(self) -> str:
        return f"{self.memory_id} end {self.digest}"


class DroppedCalls(models.Model):
    """The number of calls that were not stored, for one reason (`why`) and sender. No content is
    stored.

    A counted call that has a key may be stored later after all. Then `count` goes down. `awaited`
    are the newest of these keys.
    """

    prefix = models.CharField(max_length=255, blank=True, help_text="of the token that sent them")
    why = models.CharField(max_length=32, help_text="a DropReason")
    sender = models.CharField(max_length=100, blank=True)
    count = models.BigIntegerField(default=0)
    last_at = models.DateTimeField()
    awaited = models.TextField(default="[]", help_text="JSON")

    objects = TableManager()

    class Meta:
        verbose_name_plural = "dropped calls"
        constraints = [models.UniqueConstraint("prefix", "why", "sender", name="calls_dropped")]

    def __str__(self) -> str:
        return f"{self.count} {self.why} of {self.sender}"
