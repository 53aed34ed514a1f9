"""Times in the tables are whole milliseconds since 1970; everywhere else they are seconds."""


def milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
