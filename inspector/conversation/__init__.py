"""Presenters of the conversation page.

Each presenter is a function of a `queries.ConversationState`. Presenters make no queries, and the
templates only read their attributes.
"""

from inspector.conversation.links import conversation_url
from inspector.conversation.page import ConversationPage

__all__ = ["ConversationPage", "conversation_url"]
