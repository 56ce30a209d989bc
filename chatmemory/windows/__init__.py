"""Windows (the messages that the model sees next), the policies that limit them, and transitions
(the effects of changes on a window).
"""
