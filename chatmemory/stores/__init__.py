"""The stores of messages: each module has implementations of `ChatMemoryStore`."""
