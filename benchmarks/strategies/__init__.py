"""What the memory of each agent framework would have held of recorded conversations, and cost."""
