"""Everything that Postern can do, one verb a function: ``async (gateway, actor, request) -> value``.

A use case raises ``Refused`` with a problem code and knows nothing of HTTP. Every surface is a thin table
over these.
"""
