"""Hours: what was said, sent and found in each hour."""
