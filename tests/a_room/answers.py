"""A service of the room of tests."""


def answer() -> str:
    return "An answer"
