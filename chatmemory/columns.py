"""Columns that several tables have."""

from __future__ import annotations

from django.db import models

from chatmemory.core.policies import DEFAULT_ESTIMATOR, Policy
from chatmemory.core.stored_policies import stored_policy


class PolicyColumns(models.Model):
    """The columns of a policy. Without a kind, the client decides the window."""

    policy_kind = models.CharField(max_length=32, null=True, blank=True)
    policy_limit = models.BigIntegerField(null=True, blank=True)
    policy_estimator = models.CharField(max_length=255, default=DEFAULT_ESTIMATOR)
    policy_options = models.JSONField(default=dict, blank=True)

    class Meta:
        abstract = True

    @property
    def policy(self) -> Policy | None:
        """The policy. None if the client decides, an UnavailablePolicy if it is not installed."""
        if self.policy_kind is None or self.policy_limit is None:
            return None
        return stored_policy(
            self.policy_kind, self.policy_limit, self.policy_estimator, self.policy_options
        )

    @policy.setter
    def policy(self, policy: Policy | None) -> None:
        """Set all columns. None leaves the estimator as it is."""
        self.policy_kind = policy.kind if policy else None
        self.policy_limit = policy.limit if policy else None
        self.policy_options = policy.options if policy else {}
        if policy:
            self.policy_estimator = policy.estimator
