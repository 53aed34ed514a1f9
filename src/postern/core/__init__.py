"""The decision, without the world.

Everything here takes bytes, values and ``now`` and gives a value back for every input: nothing raises on what
a stranger sends, reads a clock, opens a file or a socket, or knows a framework. ``admit.py`` is the path of a
call.
"""
