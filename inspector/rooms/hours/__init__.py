"""Hours: messages, prompts and problems in each hour, counted for all conversations and for
groups.
"""
