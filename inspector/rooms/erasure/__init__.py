"""Erasure: redacting messages, and deleting conversations by age and label."""
