"""What the examples of frameworks share: memories in the database of `make run`, and the addresses
of their pages.
"""

from __future__ import annotations

import os

import django

from chatmemory import ChatMemory, MessageWindowChatMemory

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
django.setup()

from django.urls import reverse  # noqa: E402  (needs Django's settings)

from chatmemory.stores.database import DjangoChatMemoryStore  # noqa: E402  (the same)

QUESTIONS = ("My order is A-1182.", "Where is my parcel?", "Which order did I mean?")


def memory_of(name: str) -> ChatMemory:
    """Return a memory of four messages, so that the order's number leaves it."""
    return MessageWindowChatMemory(name, max_messages=4, store=DjangoChatMemoryStore("example"))


def tell_address(memory: ChatMemory) -> None:
    print(f"http://127.0.0.1:8000{reverse('inspector:conversation', args=[memory.id])}")
