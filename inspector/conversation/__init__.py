"""Presenters of the conversation page.

Each presenter is made from a `ConversationState`. Presenters make no queries, and the
templates only read their attributes.
"""
