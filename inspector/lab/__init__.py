"""Presenters of the lab: a conversation under several policies, and the limits of many.

They make no queries, and the templates only read their attributes.
"""
