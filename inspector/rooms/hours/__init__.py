"""Hours: messages, prompts and cases that need attention, counted by the hour for all conversations
and for groups.
"""
