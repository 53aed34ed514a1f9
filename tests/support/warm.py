"""What forks find done besides what they find loaded: the server that they are forked from loads this last.

Nothing here is remembered by a metric, a file or a thread, and each of it is what the first visitor of a page would wait for.
"""

import gc

from postern.surfaces.console import pages, rehearsal
from postern.surfaces.rest.table import operations
from postern.usecases.signatures import senders
from support.hashing import hash_in_no_time

hash_in_no_time()

assert list(operations())  # each is loaded when it is come to
for template in pages.ENVIRONMENT.list_templates(extensions=["html"]):
    pages.ENVIRONMENT.get_template(template)
for sender in senders.names():
    senders.about(sender)

# For the first visitor of a page, whom few tests have. Programs that are started rehearse.
rehearsal.AFTER = 3600.0

# A collection in a fork would look through all of this, and each thing that it looked at would be copied.
gc.collect()
gc.freeze()
