"""Warms what a forked program would do first. The server that forks are made from loads this last. Nothing here is
remembered by a metric, a file or a thread, and whoever types a command first, or is the first visitor of a page,
would wait for each of it."""

import gc
from importlib import import_module

from pydantic import BaseModel
from starlette.routing import compile_path

from postern.surfaces.console import pages, rehearsal
from postern.surfaces.console.routes import VIEWS
from postern.surfaces.rest.table import operations
from postern.usecases.signatures import senders
from support.hashing import hash_in_no_time

hash_in_no_time()

# What a program loads only when it comes to need it, and nearly every one does.
for module in (
    "encodings.idna",
    "postern.engines.embedded.engine",
    "postern.surfaces.cli.webhooks.yaml_files",
    "postern.wiring.engines",
    "uvicorn.lifespan.off",
):
    import_module(module)

# Expressions stay in the cache of `re`, and what a request may hold in its class.
for path in {*(one.path for one in operations()), *(path for _, path, _ in VIEWS)}:
    compile_path(path)
for operation in operations():
    for asked in (operation.query, operation.body):
        if isinstance(asked, type) and issubclass(asked, BaseModel):
            asked.model_rebuild()
for template in pages.ENVIRONMENT.list_templates(extensions=["html"]):
    pages.ENVIRONMENT.get_template(template)
for sender in senders.names():
    senders.about(sender)

# For the first visitor of a page, whom few tests have. Programs that are started rehearse.
rehearsal.AFTER = 3600.0

# A collection in a fork would look through all of this, and each thing that it looked at would be copied.
gc.collect()
gc.freeze()
