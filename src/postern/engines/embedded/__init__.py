"""The embedded engine: DBOS on a file of its own, in a process of its own beside the gateway.

``engine.py`` is what the gateway holds, ``supervisor.py`` keeps the process running, ``frames.py`` is what
the two say to each other; ``process.py`` is the process itself, ``runs.py`` its workflow runs, ``durable.py``
what a workflow's words do.
"""
