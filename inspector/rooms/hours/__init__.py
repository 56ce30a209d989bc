"""Hours: what was said, sent and found in each hour, for all conversations and for groups."""
