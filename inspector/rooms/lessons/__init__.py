"""Lessons: memory and history, taught by the core itself.

A lesson is a file of texts, messages, a policy and questions (docs/lessons.md). `lesson` reads and
checks it, `stage` plays its script with the core, `words` fills its texts and compares an answer
with what the core did, and `board` shows it. Nothing here reads or writes a conversation. A new
lesson is a file in `files/`.
"""
