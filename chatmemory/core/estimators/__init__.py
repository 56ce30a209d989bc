"""How many tokens a message costs: the protocol, OpenAI's estimator, and estimators by name."""

from chatmemory.core.estimators.openai import (
    LONGEST_BLANK,
    OpenAiTokenCountEstimator,
    TokenCountEstimator,
    count_tokens,
    estimator_for,
    family_named,
    family_of,
    is_known,
    remember_tokens,
)

__all__ = [
    "LONGEST_BLANK",
    "OpenAiTokenCountEstimator",
    "TokenCountEstimator",
    "count_tokens",
    "estimator_for",
    "family_named",
    "family_of",
    "is_known",
    "remember_tokens",
]
