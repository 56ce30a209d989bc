"""Reports on transcript files, as `chatmemory doctor`, `recall`, `incidents` and `compactions`
print them. Nothing is stored, and neither Django nor a database is needed.

A module with the name of a command has three parts: HELP, `add_arguments`, and `report`, which
prints the findings and returns the exit code. A management command with the same name also reports
on stored conversations.
"""

import chatmemory.messages  # noqa: F401  (refuses another package named chatmemory in its place)
