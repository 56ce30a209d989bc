"""The converter of memory ids in URL patterns; see `messages.ids` for the encoding."""

from __future__ import annotations

from django.urls import register_converter

from chatmemory.messages.ids import address, memory_id_at

__all__ = ["MemoryIdConverter", "address", "memory_id_at"]


class MemoryIdConverter:
    """The converter `<memory:memory_id>` of URL patterns. A path segment that is not an encoded
    memory id does not match.
    """

    regex = "[A-Za-z0-9._~-]+"

    def to_python(self, value: str) -> str:
        return memory_id_at(value)

    def to_url(self, value: str) -> str:
        return address(value)


register_converter(MemoryIdConverter, "memory")
