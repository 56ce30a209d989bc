"""All reads of stored conversations. They return frozen dataclasses, never lazy query sets, and
write nothing.

"At step n" means after that step; without a step, it means now. Step 0 is the empty conversation.
"Memory" and "window" are the messages that the model sees. A "stay" is one period of a message in
the window.
"""
