"""The conversation page, ready for its templates.

Each presenter is a function of a `queries.ConversationState`: nothing here asks the database, and
templates only look up attributes.
"""

from inspector.conversation.page import ConversationPage

__all__ = ["ConversationPage"]
