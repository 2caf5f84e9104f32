"""The store on disk: SQLite in one writer thread, many writes to a commit.

    registry ──put──▶ Store (accepted) ──append──▶ Journal ──batch──▶ Committer (one commit) ──▶ Store.publish
                                                       │                    └──fails──▶ Store.roll_back, writers told
    request ──────────────wait_settled(revision)───────┘

Promises:

1. A write is answered, readable and watchable only after its commit (`synchronous=FULL`); `kill -9` at any moment loses
   nothing that was acknowledged, and an unacknowledged write is there whole or not at all.
2. Revisions are reserved on disk in blocks before any is given out, and a restart goes on above the block: no revision
   is given out twice, not even one whose write failed.
3. A failed commit (a full disk) fails the writes it held, and those that built on them; the server goes on.

The format is versioned: a directory of another version, or in use by another server, is refused with a `ConfigError`.
"""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from skysail.api.errors import ApiError, ConfigError
from skysail.apiserver.contract import GroupResource
from skysail.apiserver.status import internal_error
from skysail.apiserver.store import Change, Store, StoredObject

FILE_NAME = "skysail.db"
FORMAT = "skysail-store-1"
REVISION_BLOCK = 100_000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
    api_group TEXT NOT NULL, resource TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL,
    selectors BLOB NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (api_group, resource, key)
) WITHOUT ROWID;
"""


class CommitFailed(Exception):
    """A batch could not be written; nothing of it is on disk."""


class Committer(Protocol):
    """Makes a batch of changes durable, all or none."""

    async def commit(self, changes: Sequence[Change]) -> None:
        """Write the changes.

        Raises:
            CommitFailed: None of them is written.
        """
        ...


class Database:
    """One data directory. Everything here blocks: call it from the writer thread, or before serving."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / FILE_NAME
        self._held = ExitStack()
        with self._refusing():
            directory.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self._file, check_same_thread=False, isolation_level=None, timeout=0.2)
            self._held.callback(self._connection.close)
            self._open()

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Whatever the disk says before serving is the directory's fault, and ends the start; the file is let go."""
        with ExitStack() as on_error:
            on_error.push(self._held)
            try:
                yield
            except (OSError, sqlite3.Error) as error:
                raise self.unusable(_why(error)) from error
            on_error.pop_all()

    def unusable(self, why: str) -> ConfigError:
        """The error that ends a start on this directory."""
        return ConfigError(f"cannot use the data directory: {why}", file=str(self._file))

    def _open(self) -> None:
        run = self._connection.execute
        run("PRAGMA locking_mode=EXCLUSIVE")
        run("BEGIN EXCLUSIVE")
        names = {row[0] for row in run("SELECT name FROM sqlite_master WHERE type='table'")}
        if names and "meta" not in names:
            raise ConfigError("the data directory holds something else", file=str(self._file))
        if "meta" in names:
            found = self._meta("format")
            if found != FORMAT:
                raise ConfigError(
                    f"the data directory was written by another version: found format {found or 'none'}, "
                    f"this version reads {FORMAT}",
                    file=str(self._file),
                )
        run("COMMIT")
        run("PRAGMA journal_mode=WAL")  # only now: a refused directory stays as it is, to the byte
        run("PRAGMA synchronous=FULL")
        self._connection.executescript(_SCHEMA)
        self._set_meta("format", FORMAT)

    def _meta(self, name: str) -> str:
        row = self._connection.execute("SELECT value FROM meta WHERE name=?", (name,)).fetchone()
        return str(row[0]) if row else ""

    def _set_meta(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    @property
    def reserved(self) -> int:
        """The highest revision that may have been given out.

        Raises:
            ConfigError: It cannot be read.
        """
        with self._refusing():
            return int(self._meta("reserved") or 0)

    def reserve(self, revision: int) -> None:
        """Note that revisions up to this one may be given out.

        Raises:
            ConfigError: It cannot be written.
        """
        with self._refusing():
            self._set_meta("reserved", str(revision))

    def load(self) -> list[StoredObject]:
        """Everything that is stored.

        Raises:
            ConfigError: Some of it cannot be read.
        """
        known: dict[tuple[str, str], GroupResource] = {}
        with self._refusing():
            return [
                StoredObject(
                    known.setdefault((group, resource), GroupResource(group, resource)), key, revision, selectors, body
                )
                for group, resource, key, revision, selectors, body in self._connection.execute(
                    "SELECT api_group, resource, key, revision, selectors, body FROM objects"
                )
            ]

    def write(self, changes: Sequence[Change], reserve: int | None) -> None:
        """Write a batch in one transaction, and reserve revisions with it.

        Raises:
            CommitFailed: Nothing was written.
        """
        run, many = self._connection.execute, self._connection.executemany
        last = {(*change.resource, change.key): change.new for change in changes}
        gone = [key for key, new in last.items() if new is None]
        rows = [
            (*key, new.revision, msgspec.json.encode((new.labels, new.fields)), new.body)
            for key, new in last.items()
            if new is not None
        ]
        try:
            run("BEGIN")
            many("DELETE FROM objects WHERE api_group=? AND resource=? AND key=?", gone)
            many("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)", rows)
            if reserve is not None:
                self._set_meta("reserved", str(reserve))
            run("COMMIT")
        except sqlite3.Error as error:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise CommitFailed(str(error)) from error

    def close(self) -> None:
        """Let go of the directory."""
        self._held.close()


def _why(error: Exception) -> str:
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return "another server is using it"
    return str(error)


class ThreadCommitter:
    """Commits in the one writer thread, so that the event loop never waits for the disk."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="skysail-store")
        self._reserved = database.reserved

    async def commit(self, changes: Sequence[Change]) -> None:
        """See `Committer`; reserves the next block of revisions when half of the last is used."""
        reserve = None
        if changes[-1].revision > self._reserved - REVISION_BLOCK // 2:
            reserve = changes[-1].revision + REVISION_BLOCK
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._database.write, changes, reserve)
        if reserve is not None:
            self._reserved = reserve

    def close(self) -> None:
        """End the thread and close the database."""
        self._thread.shutdown()
        self._database.close()


class Journal:
    """Collects accepted writes, has them committed in batches, and publishes them in order."""

    def __init__(self, store: Store, committer: Committer) -> None:
        self._store, self._committer = store, committer
        self._waiting: list[Change] = []
        self._arrived = asyncio.Event()
        self._settled: dict[int, asyncio.Future[None]] = {}
        store.journal = self

    def append(self, change: Change) -> None:
        """Take an accepted write for the next batch."""
        self._waiting.append(change)
        self._arrived.set()

    async def run(self) -> None:
        """Commit batch after batch, until cancelled."""
        while True:
            await self._arrived.wait()
            await self.flush()

    async def flush(self) -> str:
        """Commit what waits, as one batch, and tell the writers.

        Returns:
            Why it failed; empty when nothing is lost.
        """
        batch, self._waiting = self._waiting, []
        self._arrived.clear()
        if not batch:
            return ""
        try:
            await self._committer.commit(batch)
        except CommitFailed as failure:
            lost = [*batch, *self._waiting]
            self._waiting = []
            self._store.roll_back()
            self._tell(lost, str(failure))
            return str(failure)
        self._store.publish(batch[-1].revision)
        self._tell(batch, "")
        return ""

    def _tell(self, changes: Sequence[Change], failure: str) -> None:
        for change in changes:
            future = self._settled.pop(change.revision, None)
            if future is not None and not future.done():
                if failure:
                    future.set_exception(_not_committed(failure))
                else:
                    future.set_result(None)

    async def wait_settled(self, revision: int) -> None:
        """Wait until an accepted write, and all before it, are committed.

        Raises:
            InternalError: The commit failed; the write has not happened.
        """
        if not self._store.is_pending(revision):
            return
        future = self._settled.get(revision)
        if future is None:
            future = self._settled[revision] = asyncio.get_running_loop().create_future()
        await asyncio.shield(future)


def _not_committed(why: str) -> ApiError:
    return internal_error(f"the write could not be committed: {why}")
