"""The store: every repository over one database and one writer."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from postern.core.history.invocation import StoreUnavailable
from postern.stores.access.api_keys import ApiKeys
from postern.stores.access.audit import Audit
from postern.stores.access.people import People
from postern.stores.calls.recorder import record_all
from postern.stores.channels import Channels
from postern.stores.chores import Chores
from postern.stores.condition import Condition
from postern.stores.deliveries.deliveries import Deliveries
from postern.stores.deliveries.emissions import Emissions
from postern.stores.deliveries.replays import Replays
from postern.stores.deliveries.slots import Slots
from postern.stores.deliveries.turns import TurnStore
from postern.stores.history.ahead import Ahead
from postern.stores.history.endings import EndingStore
from postern.stores.history.findable import Findable
from postern.stores.history.marks import CallMarks, SavedViews
from postern.stores.history.reading import History
from postern.stores.history.retention import Retention
from postern.stores.history.volumes import Volumes
from postern.stores.idempotency import Idempotency
from postern.stores.incidents import Incidents
from postern.stores.listeners import ListenerStore
from postern.stores.samples import Samples
from postern.stores.schedules import Schedules
from postern.stores.secrets import keys
from postern.stores.secrets.vault import Vault
from postern.stores.sender_keys import SenderKeys
from postern.stores.sql import wake
from postern.stores.sql.checkpoint import Checkpoints
from postern.stores.sql.database import Database
from postern.stores.sql.writer import Writer
from postern.stores.webhooks.bin import BinStore
from postern.stores.webhooks.webhooks import WebhookStore


class Store:
    def __init__(self, url: str, secret_keys: list[str]) -> None:
        self.database = Database(url)
        file = self.database.file
        self._checkpoints = Checkpoints(str(self.database.url.database), file.connect) if file else None
        self.writer = Writer(
            self.database, record_all, self._checkpoints.between_commits if self._checkpoints else None
        )
        self._condition = Condition(self.database, self.writer)
        self.record, self.trouble = self.writer.record, self._condition.trouble
        self.vault = Vault(secret_keys)
        self.webhooks = WebhookStore(self.database, self.writer, self.vault)
        self.bin = BinStore(self.database, self.writer, self.webhooks)
        self.history = History(self.database, self.writer)
        self.findable = Findable(self.database, self.writer)
        self.deliveries = Deliveries(self.database, self.writer)
        self.turns = TurnStore(self.database, self.writer)
        self.emissions = Emissions(self.database, self.writer)
        self.slots = Slots(self.database, self.writer)
        self.marks = CallMarks(self.database, self.writer)
        self.endings = EndingStore(self.database, self.writer)
        self.samples = Samples(self.database, self.writer)
        self.schedules = Schedules(self.database, self.writer)
        self.retention = Retention(self.database, self.writer)
        self.chores = Chores(self.database, self.writer)
        self.ahead = Ahead(self.database, self.writer)
        self.api_keys = ApiKeys(self.database, self.writer)
        self.people = People(self.database, self.writer)
        self.idempotency = Idempotency(self.database, self.writer, self.vault)
        self.replays = Replays(self.database, self.writer)
        self.saved_views = SavedViews(self.database, self.writer)
        self.audit = Audit(self.database, self.writer)
        self.listeners = ListenerStore(self.database, self.writer)
        self.volumes = Volumes(self.database, self.writer)
        self.incidents = Incidents(self.database, self.writer)
        self.channels = Channels(self.database, self.writer, self.vault)
        self.sender_keys = SenderKeys(self.database, self.writer)
        self._alone_lock: wake.AloneLock | None = None

    async def open(self) -> None:
        """Opens a database that `schema.prepare` has looked at."""
        try:
            keys.check(self.database, self.vault)
        except DBAPIError as error:
            self.database.close()
            raise StoreUnavailable(str(error.orig)) from error
        except BaseException:
            self.database.close()
            raise
        self.writer.start()
        if self._checkpoints is not None:
            self._checkpoints.start()

    async def listen(self, on_message: Callable[[str], None]) -> None:
        if self.database.is_sqlite:
            on_message(wake.LISTENING)  # nobody else serves this database, so nothing goes unheard
        else:
            await wake.listen(self.database.url, on_message)

    def alone(self) -> bool:
        """Whether this process is the only one that runs workflows on this database; others are told no until it ends.
        On SQLite a lock file beside the database sees to that already."""
        if self.database.is_sqlite:
            return True
        self._alone_lock = wake.AloneLock(self.database.url)
        return self._alone_lock.take()

    async def still_alone(self) -> bool:
        """False once another process has become the one that ``alone`` let this one be."""
        lock = self._alone_lock
        return lock is None or await asyncio.to_thread(lock.keep)

    def room(self) -> tuple[int, int] | None:
        """Returns the free and all bytes of the disk, or None if the database is on another machine."""
        if not self.database.is_sqlite:
            return None
        disk = shutil.disk_usage(Path(self.database.url.database or "").parent)
        return disk.free, disk.total

    async def close(self) -> None:
        await self.writer.close()
        await self._condition.close()
        if self._alone_lock is not None:
            self._alone_lock.release()
        if self._checkpoints is not None:
            self._checkpoints.stop()
        self.database.close()
