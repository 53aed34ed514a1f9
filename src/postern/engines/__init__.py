"""Workflow engines: each file (or folder) is one, and fits ``usecases.ports.Engine``."""
