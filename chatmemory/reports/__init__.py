"""Reports on transcript files, for commands such as `chatmemory doctor` and `chatmemory recall`.
Neither Django nor a database is needed.

A module with the name of a command has three parts: HELP, `add_arguments`, and `report`, which
prints the findings and returns the exit code. The management command with the same name can also
report on stored conversations.
"""

import chatmemory.messages  # noqa: F401  (refuses another package named chatmemory in its place)
