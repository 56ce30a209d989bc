"""Hours: messages, prompts and cases in each hour, for all conversations and for groups."""
