"""Windows, which the model sees next, the policies that bound them, and the transitions of each
change.
"""
