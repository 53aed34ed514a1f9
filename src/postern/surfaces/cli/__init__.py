"""The command line: the same use cases, for people in a terminal and for scripts (``--json``)."""
