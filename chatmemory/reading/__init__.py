"""All reads. They return frozen dataclasses, never lazy query sets, and write nothing.

"At step n" means after that step; without a step, it means now. Step 0 is the empty conversation.
"""
