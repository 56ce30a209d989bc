"""Hours: turns, prompts and problems in each hour, counted for all conversations and for groups of
conversations.
"""
