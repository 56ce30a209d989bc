"""Token counts of messages: the port, OpenAI's estimator, and estimators by name."""

from chatmemory.core.estimators.counting import (
    ESTIMATORS,
    TokenCountEstimator,
    count_overhead,
    count_tokens,
    estimator_for,
    family_named,
    family_of,
    is_known,
    remember_tokens,
)
from chatmemory.core.estimators.openai import LONGEST_RUN, OpenAiTokenCountEstimator

__all__ = [
    "ESTIMATORS",
    "LONGEST_RUN",
    "OpenAiTokenCountEstimator",
    "TokenCountEstimator",
    "count_overhead",
    "count_tokens",
    "estimator_for",
    "family_named",
    "family_of",
    "is_known",
    "remember_tokens",
]
