"""The embedded engine: workflow runs on a journal of its own, in a process of its own beside the gateway.

``engine.py`` is what the gateway holds, ``supervisor.py`` keeps the process running, ``link.py`` and
``conversation.py`` are the two ends of the socket between them, and ``frames.py`` is what they send;
``process.py`` is the process itself, ``runs.py`` its workflow runs, ``turns.py`` which of them has a thread,
``housekeeping.py`` what wakes and prunes them, ``replay.py`` what a workflow's words do, ``journal.py`` the file that
remembers it all.
"""
