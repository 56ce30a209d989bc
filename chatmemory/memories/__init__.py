"""The memories that programs use. They work without Django, and with any store."""
