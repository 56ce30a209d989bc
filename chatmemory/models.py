"""The tables of conversations. Other tables are in `records` and `kept`.

- `Memory`: a conversation, with its policy and counters.
- `Message`: the history. Messages are only appended.
- `Stay`: the time of a message in memory, from `entered_step` to `left_step`.
- `Step`: the ledger, with one numbered row for each change.

Only the package `ledger` writes changes of conversations.
"""

from __future__ import annotations

from operator import attrgetter

from django.db import models
from django.db.models import F, Q

from chatmemory.columns import Column, declared
from chatmemory.managers import AnyMemoryManager, MemoryManager, TableManager
from chatmemory.messages.codec import payload_of
from chatmemory.messages.message import MessageType
from chatmemory.records import ApiToken, AuditEntry, DefaultPolicy, IdempotentAnswer, PolicyColumns
from chatmemory.windows.eviction import Reason

__all__ = [
    "ApiToken",
    "AuditEntry",
    "DefaultPolicy",
    "IdempotentAnswer",
    "Memory",
    "Message",
    "Stay",
    "Step",
]

_OPEN = Q(left_step__isnull=True)
_LEFT = Q(left_step__isnull=False)
# Stays that a limit does not evict. Only queries with this condition use `stay_protected`.
PROTECTED = Q(type="SYSTEM") | Q(pinned=True)
_BRANCHED = Q(branched_from__isnull=False)
_OVER_LIMIT = Q(window_load__gt=F("policy_limit"))
# Steps of a conversation's life, not of the import or the branch that made it.
LIVED = ~Q(note="imported") & ~Q(note="branched")
_EVICTING = Q(count_after__lte=F("count_before")) & LIVED


class Memory(PolicyColumns):
    """A conversation: its policy, labels and counters. The caller chooses the `id`."""

    id = models.CharField(max_length=255, primary_key=True)
    labels = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    branched_from = models.CharField(
        max_length=255, null=True, blank=True, help_text="the conversation that it was saved from"
    )

    # Counters: the newest number of each kind of row, and the totals of history and window.
    last_step = models.BigIntegerField(default=0)
    last_seq = models.BigIntegerField(default=0, help_text="seq of the newest message row")
    last_stay = models.BigIntegerField(default=0, help_text="the number `n` of the newest stay")
    said_count = models.BigIntegerField(default=0, help_text="messages in history")
    history_tokens = models.BigIntegerField(default=0)
    window_count = models.BigIntegerField(default=0)
    window_tokens = models.BigIntegerField(default=0)
    window_size = models.BigIntegerField(
        default=0, help_text="bytes of the JSON of the messages in the window"
    )
    window_load = models.BigIntegerField(
        null=True, help_text="how much of the limit memory takes; null without an installed policy"
    )

    # The chain of digests; see the hook `sealing`. Without a room that seals, they are empty.
    head = models.BinaryField(help_text="digest of the newest step")
    labels_salt = models.BinaryField()
    first_labels = models.BinaryField(help_text="commitment of the first labels")
    previous_head = models.BinaryField(
        null=True, help_text="head of a deleted conversation with this id"
    )

    # Bounds for reading past windows; see ledger.numbers.
    oldest = models.BigIntegerField(default=1)
    ordered_from = models.BigIntegerField(default=0)

    # Changes that are made in several transactions; see ledger.erasure and ledger.slices.
    deleted_at = models.DateTimeField(null=True, help_text="when its deletion began")
    imported = models.BigIntegerField(
        null=True, help_text="messages of an unfinished import that are stored"
    )

    objects = MemoryManager()
    with_deleted = AnyMemoryManager()

    class Meta:
        verbose_name_plural = "memories"
        indexes = [
            models.Index(F("updated_at").desc(), F("id").desc(), name="memory_by_activity"),
            models.Index("created_at", "id", name="memory_by_creation"),
            models.Index("branched_from", condition=_BRANCHED, name="memory_branches"),
            models.Index("window_load", condition=_OVER_LIMIT, name="memory_over_limit"),
        ]

    def __str__(self) -> str:
        return self.id

    @property
    def version(self) -> int:
        """The number that an If-Match header must have. It increases with every step."""
        return self.last_step


class Message(models.Model):
    """A message of a conversation. A row never changes, except by redaction (see
    `ledger.redaction`).

    `payload` is the message's JSON, exactly as the serializer writes it. It is stored as two
    columns: `text`, and `frame`, which is the JSON around the text (see `messages.codec.frames`).
    The column `attributes` has the attributes of a system message, which are not in its JSON.

    A message of origin SYNTHETIC was put into memory by a client and is not in history.
    """

    class Origin(models.TextChoices):
        SAID = "SAID"
        SYNTHETIC = "SYNTHETIC"

    pk = models.CompositePrimaryKey("memory_id", "seq")
    memory = models.ForeignKey(Memory, models.CASCADE, related_name="+", db_index=False)
    seq = models.BigIntegerField()
    type = models.CharField(max_length=24, choices=[(t.value, t.value) for t in MessageType])
    text = models.TextField()
    frame = models.TextField()
    attributes = models.TextField(
        null=True, blank=True, help_text="of a system message, whose JSON has none"
    )
    tokens = models.IntegerField()
    origin = models.CharField(max_length=9, choices=Origin.choices, default=Origin.SAID)
    said_at = models.DateTimeField()
    client_id = models.CharField(max_length=255, null=True, blank=True)
    redacted_step = models.BigIntegerField(
        null=True, blank=True, help_text="the step that redacted it"
    )
    salt = models.BinaryField(null=True, help_text="erased by a redaction")
    commitment = models.BinaryField(help_text="of the words as they were said")

    objects = TableManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "memory", "client_id", condition=Q(client_id__isnull=False), name="client_id_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} #{self.seq}"

    @property
    def payload(self) -> str:
        return payload_of(self.frame, self.text)

    @property
    def size(self) -> int:
        """The number of bytes of the message in UTF-8: of its JSON, and of the attributes that are
        stored separately.
        """
        return len(f"{self.payload}{self.attributes or ''}".encode(errors="surrogatepass"))


class Stay(models.Model):
    """A stay of a message in memory. The row repeats those columns of the message that evictions
    depend on, such as `type` and `tokens`.

    In memory, the message can have another text or other attributes than in history: see
    `ledger.overrides`.
    """

    pk = models.CompositePrimaryKey("memory_id", "n")
    memory = models.ForeignKey(Memory, models.CASCADE, related_name="+", db_index=False)
    n = models.BigIntegerField()
    seq = models.BigIntegerField()
    entered_step = models.BigIntegerField()
    left_step = models.BigIntegerField(null=True, blank=True)
    reason = models.CharField(
        max_length=11, null=True, blank=True, choices=[(r.value, r.value) for r in Reason]
    )
    rank = models.BigIntegerField()
    type = models.CharField(max_length=24)
    has_calls = models.BooleanField(default=False)
    pinned = models.BooleanField(default=False)
    tokens = models.IntegerField()
    size = models.IntegerField(help_text="bytes of the message's JSON when the stay began")
    overrides = models.TextField(
        null=True, blank=True, help_text="what differs from the message, as JSON"
    )

    message = models.ForeignObject(
        Message,
        on_delete=models.DO_NOTHING,
        from_fields=["memory", "seq"],
        to_fields=["memory", "seq"],
        related_name="stays",
    )

    objects = TableManager()

    class Meta:
        indexes = [
            models.Index("memory", "rank", condition=_OPEN, name="stay_open"),
            models.Index("memory", "left_step", condition=_LEFT, name="stay_left"),
            models.Index("memory", "seq", name="stay_of_message"),
            models.Index("memory", "n", condition=PROTECTED, name="stay_protected"),
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} stay {self.n} of #{self.seq}"


class Step(PolicyColumns):
    """A change of a conversation, with the totals of memory before and after it. The steps of a
    conversation are numbered 1, 2, 3…
    """

    class Kind(models.TextChoices):
        ADD = "add"
        SET = "set"
        CLEAR = "clear"
        POLICY = "policy"
        LABELS = "labels"
        PIN = "pin"
        UNPIN = "unpin"
        COMPACT = "compact"
        REPAIR = "repair"
        REDACT = "redact"
        CLEAR_RESULTS = "stub"
        INDEX = "index"

    # The notes of the steps that made a conversation: their evictions are not in the feed.
    IMPORTED, BRANCHED = "imported", "branched"

    pk = models.CompositePrimaryKey("memory_id", "n")
    memory = models.ForeignKey(Memory, models.CASCADE, related_name="+", db_index=False)
    n = models.BigIntegerField()
    kind = models.CharField(max_length=8, choices=Kind.choices)
    at = models.DateTimeField()
    actor = models.CharField(max_length=255, blank=True)
    by_client = models.BooleanField(
        default=False, help_text="the caller handed over the whole window; no policy decided"
    )
    count_before = models.BigIntegerField()
    tokens_before = models.BigIntegerField()
    count_after = models.BigIntegerField()
    tokens_after = models.BigIntegerField()
    load = declared(
        models.BigIntegerField(
            null=True,
            help_text="how much of the limit memory takes; null without an installed policy",
        ),
        Column(
            of=attrgetter("window_load"),
            sealed_since=4,
            hidden="its policy and the totals after it tell it",
            is_filled_in=True,
        ),
    )
    history_tokens = models.BigIntegerField(help_text="of all messages said so far")
    last_seq = models.BigIntegerField(help_text="seq of the newest message row so far")
    said_count = models.BigIntegerField(help_text="messages in history so far")
    last_stay = models.BigIntegerField(help_text="the number `n` of the newest stay after the step")
    oldest = models.BigIntegerField(
        help_text="no open stay has a lower n, a leading system message and pins excepted"
    )
    seq = models.BigIntegerField(
        null=True, blank=True, help_text="seq of what was redacted or pinned"
    )
    note = models.CharField(max_length=255, blank=True)
    commitment = models.BinaryField(
        null=True, help_text="the digest of the new labels, or of what a redaction left"
    )
    digest = models.BinaryField(help_text="of the step before and of all that it wrote")

    objects = TableManager()

    class Meta:
        indexes = [
            models.Index(
                F("at").desc(), "memory", F("n").desc(), condition=_EVICTING, name="step_evicting"
            ),
            models.Index("at", condition=Q(kind="policy"), name="step_policy"),
        ]

    def __str__(self) -> str:
        return f"{self.memory_id} step {self.n}"
