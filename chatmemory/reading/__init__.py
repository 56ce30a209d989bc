"""All reads of stored conversations. They write nothing, and return frozen dataclasses, never lazy
query sets.

The argument `at` of a read is the number of a step. The read then returns the state right after
this step; without `at`, the current state. Step 0 is the empty conversation.
"""
