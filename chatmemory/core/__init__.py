"""The core: pure Python, no Django, no I/O. Everything else builds on it and it imports nothing
back.
"""
