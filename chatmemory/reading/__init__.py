"""All reads of stored conversations. They write nothing, and return frozen dataclasses, never lazy
query sets.

An argument `at` is the number of a step, and means after this step. Without it, a read returns the
state of now. Step 0 is the empty conversation.
"""
