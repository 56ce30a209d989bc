"""Lessons: interactive explanations of memory and history, played with chatmemory's own code.

A lesson is a file with texts, messages, a policy and questions; see docs/lessons.md. Files in
`files/` are lessons of the package. Nothing here reads or writes a conversation.

- `lesson` reads a file and checks it.
- `stage` plays the messages.
- `words` fills in texts and judges answers.
- `board` shows the messages.
"""
