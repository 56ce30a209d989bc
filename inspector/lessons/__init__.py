"""Lessons: memory and history, taught by the core itself.

A lesson is a file of texts, messages, a policy and questions (docs/lessons.md). `lesson_files`
checks it, `stage` plays its script with the core, `answers` compares an answer with what the core
did, and `board` shows it. Nothing here reads or writes a conversation.
"""
