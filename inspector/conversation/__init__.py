"""Presenters of the conversation page.

Each presenter is made from a `ConversationState`. Presenters make no queries, and templates only
read their attributes.
"""
