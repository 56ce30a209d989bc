"""OpenAI's words for how closely an image should be looked at."""

from chatmemory.core.contents import DetailLevel

DETAILS = {"low": DetailLevel.LOW, "high": DetailLevel.HIGH, "auto": DetailLevel.AUTO}
