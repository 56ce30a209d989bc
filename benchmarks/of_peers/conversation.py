"""The conversation in which all libraries take turns."""

MESSAGES = 10_000
WINDOW_TOKENS = 4_000
TOKENS_PER_MESSAGE = 4  # beside its text, as OpenAI counts
