"""The tables that are not part of a conversation: default policies, API tokens, stored responses
and the audit log. Also the columns of a policy.
"""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from chatmemory.managers import TableManager
from chatmemory.roles import Role
from chatmemory.windows.policies import DEFAULT_ESTIMATOR, Policy
from chatmemory.windows.stored_policies import stored_policy


class PolicyColumns(models.Model):
    """The database columns of a policy. `policy_kind` is None if there is no policy, because the
    client decides what is in memory.
    """

    policy_kind = models.CharField(max_length=32, null=True, blank=True)
    policy_limit = models.BigIntegerField(null=True, blank=True)
    policy_estimator = models.CharField(max_length=255, default=DEFAULT_ESTIMATOR)
    policy_options = models.JSONField(default=dict, blank=True)

    class Meta:
        abstract = True

    @property
    def policy(self) -> Policy | None:
        """The policy. None if the client decides what is in memory. An UnavailablePolicy if the
        kind is not installed.
        """
        if self.policy_kind is None or self.policy_limit is None:
            return None
        return stored_policy(
            self.policy_kind, self.policy_limit, self.policy_estimator, self.policy_options
        )

    @policy.setter
    def policy(self, policy: Policy | None) -> None:
        """Set the columns to those of a policy. None means that there is no policy. The column of
        the estimator then stays as it is.
        """
        self.policy_kind = policy.kind if policy else None
        self.policy_limit = policy.limit if policy else None
        self.policy_options = policy.options if policy else {}
        if policy:
            self.policy_estimator = policy.estimator


class DefaultPolicy(PolicyColumns):
    """The policy of new conversations whose ids begin with `prefix`, if they are created without a
    policy. If several prefixes fit, the longest counts. Operators set default policies on the page
    `/policies/`.
    """

    prefix = models.CharField(max_length=255, primary_key=True, blank=True)
    set_by = models.CharField(max_length=255, blank=True)
    set_at = models.DateTimeField()

    objects = TableManager()

    class Meta:
        verbose_name_plural = "default policies"

    def __str__(self) -> str:
        return self.prefix


class ApiToken(models.Model):
    """A bearer token of the REST API. Only its digest is stored."""

    name = models.CharField(max_length=100, unique=True)
    digest = models.CharField(max_length=64, unique=True)
    role = models.CharField(max_length=8, choices=Role.choices, default=Role.OPERATOR)
    prefix = models.CharField(
        max_length=255, blank=True, help_text="it knows only ids that begin with this"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=255, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = TableManager()

    def __str__(self) -> str:
        return self.name

    @property
    def is_valid(self) -> bool:
        return self.revoked_at is None and not self.has_expired

    @property
    def has_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()


class IdempotentAnswer(models.Model):
    """The stored response to a request with an Idempotency-Key. A repeated request gets this
    response.
    """

    caller = models.CharField(max_length=40)
    key = models.CharField(max_length=255)
    memory_id = models.CharField(max_length=255, blank=True)
    request = models.CharField(
        max_length=64,
        blank=True,
        help_text="fingerprint of method, address and body; blank once the response is erased",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    status = models.SmallIntegerField()
    headers = models.JSONField()
    body = models.TextField()

    objects = TableManager()

    class Meta:
        constraints = [models.UniqueConstraint("caller", "key", name="idempotency_key_once")]
        indexes = [
            models.Index("created_at", name="idempotency_key_by_age"),
            models.Index("memory_id", name="idempotency_key_by_memory"),
        ]

    def __str__(self) -> str:
        return f"{self.key} of {self.caller}"


class AuditEntry(models.Model):
    """An entry of the audit log: the deletion of a conversation, or a redaction. The entry outlives
    a deleted conversation, so it has no foreign key to the conversation.
    """

    class Action(models.TextChoices):
        DELETE = "delete"
        REDACT = "redact"

    at = models.DateTimeField()
    actor = models.CharField(max_length=255, blank=True)
    action = models.CharField(max_length=8, choices=Action.choices)
    memory_id = models.CharField(max_length=255)
    detail = models.JSONField(default=dict, help_text="numbers and digests, no word of a message")

    objects = TableManager()

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [models.Index("memory_id", "at", name="audit_of_memory")]

    def __str__(self) -> str:
        return f"{self.action} {self.memory_id}"
