"""The conversation page, ready for its templates: a moment of a conversation, and what the panes,
the panel and the head of the page show of it.
"""

from inspector.conversation.page import ConversationPage
from inspector.conversation.simulation import SimulatedPage

__all__ = ["ConversationPage", "SimulatedPage"]
