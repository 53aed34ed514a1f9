"""The console: server-rendered pages over the same use cases that every other surface stands on."""

from postern.surfaces.console.rehearsal import rehearse
from postern.surfaces.console.routes import console_routes

__all__ = ["console_routes", "rehearse"]
