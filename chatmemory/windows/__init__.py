"""Windows, the policies that limit them, and transitions. A window has the messages that the model
sees next. A transition is the effect of one change on a window.
"""
