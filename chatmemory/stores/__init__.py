"""The stores of messages. Each module implements `ChatMemoryStore`."""
