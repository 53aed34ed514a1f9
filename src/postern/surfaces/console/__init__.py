"""The console: server-rendered pages over the same use cases that every other surface stands on."""

from postern.surfaces.console.rehearsal import rehearse
from postern.surfaces.console.routes import console_routes
from postern.surfaces.console.visit import trouble_page

__all__ = ["console_routes", "rehearse", "trouble_page"]
