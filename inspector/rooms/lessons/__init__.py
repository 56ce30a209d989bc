"""Lessons: interactive explanations of memory and history, played with chatmemory's own code.

A lesson is a file with texts, messages, a policy and questions (docs/lessons.md). `lesson` reads
and checks the file, and `stage` plays its messages. `words` fills in its texts and checks answers,
and `board` shows the messages. Nothing here reads or writes a conversation. A new lesson is a file
in `files/`.
"""
