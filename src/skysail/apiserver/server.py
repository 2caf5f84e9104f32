"""`ApiServer`: the whole API server as one object, called in process or behind the HTTP front.

    async with ApiServer(clock=clock, rng=Random(1)).running() as server:
        response = await server.handle(Request("GET", "/api/v1/namespaces"), ADMIN)

This is the shell: it waits - for commits, for a resourceVersion to come about, for changes to watch - and calls the
synchronous core for everything else. Without a data directory it uses no thread and no socket, so it runs under virtual
time.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

from skysail.api.errors import ApiError, ConfigError
from skysail.api.ports import Clock, Request, Response, User
from skysail.apiserver.authorization import (
    AlwaysAllow,
    Authorizer,
    RoleBased,
    ServerAccess,
    impersonate,
    question_of,
    refusal,
)
from skysail.apiserver.background import in_background
from skysail.apiserver.bootstrap import bootstrap
from skysail.apiserver.catalogue import DEFINITIONS
from skysail.apiserver.contract import quote
from skysail.apiserver.customresources.keeper import Keeper
from skysail.apiserver.documents import Documents
from skysail.apiserver.durable import REVISION_BLOCK, Database, Journal, ThreadCommitter
from skysail.apiserver.endpoints import Endpoints, is_watch, is_write
from skysail.apiserver.reading import FutureRevision
from skysail.apiserver.registry import Registry
from skysail.apiserver.routing import Target, route
from skysail.apiserver.schema import load
from skysail.apiserver.status import failure_response, internal_error, too_large, version_too_large
from skysail.apiserver.store import Change, Store
from skysail.apiserver.streams import Watches, WatchPlan

BODY_LIMIT = 3 * 1024 * 1024
COMPACTION_SECONDS = 300.0
FUTURE_SECONDS = 3.0
_POLL_SECONDS = 0.05
_ESTABLISH_SECONDS = 0.05
_CLEANUP_SECONDS = 1.0
_log = logging.getLogger(__name__)
_PAGE_NOT_FOUND = Response(404, (("Content-Type", "text/plain; charset=utf-8"),), b"404 page not found\n")
_WATCH_HEADERS = (("Cache-Control", "no-cache, private"), ("Content-Type", "application/json"))


class ApiServer:
    """A Kubernetes API server. Implements `skysail.api.ports.Handler`.

    Args:
        clock: For times in objects.
        rng: For uids, names, time-outs.
        data_dir: Where objects outlive the process; None keeps them in memory.
        compaction_interval: Seconds between forgetting history; a change is remembered for one to two of them.
        tokens: For TokenReview; requests arrive here authenticated.
        options: Switches: `authorization-mode` (AlwaysAllow or RBAC), `enable-service-account-admission`,
            `service-cidr`, ...
        history_limit: Changes remembered at most.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        rng: Random,
        data_dir: Path | None = None,
        compaction_interval: float = COMPACTION_SECONDS,
        tokens: Mapping[str, User] | None = None,
        options: Mapping[str, str] | None = None,
        history_limit: int = 50_000,
    ) -> None:
        self._clock, self._rng = clock, rng
        self._compaction_interval = compaction_interval
        self._database = Database(data_dir) if data_dir is not None else None
        self.schema = load()
        self.store = Store(revision=self._first_revision(), history_limit=history_limit)
        self.registry = Registry(self.store, self.schema)
        self.watches = Watches(self.store)
        self._documents = Documents(self.schema)
        self._options = dict(options or {})
        self._authorizer = self._make_authorizer()
        access = ServerAccess(self._authorizer, dict(tokens or {}).get)
        self._endpoints = Endpoints(self.registry, clock, rng, self._options, access)
        self._journal: Journal | None = None
        self._keeper = Keeper(self.registry, clock, rng)
        if self._database is not None:
            self._restore(self._database)

    def _first_revision(self) -> int:
        if self._database is None:
            return 0
        reserved = self._database.reserved
        self._database.reserve(reserved + REVISION_BLOCK)
        return reserved

    def _restore(self, database: Database) -> None:
        """Read the objects of a former life; definitions first, as they say what their instances are."""
        stored = database.load()
        self.registry.restore(each for each in stored if each.resource == DEFINITIONS)
        self._keeper.serve()
        self.registry.restore(each for each in stored if each.resource != DEFINITIONS)

    async def _keep_definitions(self) -> None:
        changed = Signal()
        cancel = self.store.subscribe(DEFINITIONS, changed)
        try:
            while True:
                waiting = self._keeper.sync()
                await changed.wait(_CLEANUP_SECONDS if waiting else None)
                await asyncio.sleep(_ESTABLISH_SECONDS)
        finally:
            cancel()

    def _make_authorizer(self) -> Authorizer:
        mode = self._options.get("authorization-mode", "AlwaysAllow")
        if mode not in ("AlwaysAllow", "RBAC"):
            raise ConfigError(f"unknown authorization mode {mode}: want AlwaysAllow or RBAC", path="authorization-mode")
        return RoleBased(self.store) if mode == "RBAC" else AlwaysAllow()

    @asynccontextmanager
    async def running(self) -> AsyncIterator["ApiServer"]:
        """Serve until the block is left; open watches end then, and what was accepted is committed.

        Raises:
            ConfigError: The first objects cannot be written to the data directory.
        """
        committer = ThreadCommitter(self._database) if self._database is not None else None
        if committer is not None:
            self._journal = Journal(self.store, committer)
        bootstrap(self.registry, self._clock, self._rng, self._options)
        try:
            if self._journal is not None and self._database is not None and (why := await self._journal.flush()):
                raise self._database.unusable(why)
            self.store.begin()
            work = {"apiserver-compaction": self._compact(), "apiserver-definitions": self._keep_definitions()}
            if self._journal is not None:
                work["apiserver-journal"] = self._journal.run()
            async with in_background(work):
                try:
                    yield self
                finally:
                    self.watches.stop()
            if self._journal is not None:
                await self._journal.flush()
        finally:
            if committer is not None:
                committer.close()

    async def _compact(self) -> None:
        before = self.store.visible
        while True:
            await asyncio.sleep(self._compaction_interval)
            self.store.compact(before)
            before = self.store.visible

    async def handle(self, request: Request, user: User) -> Response:
        """Answer one request; see `skysail.api.ports.Handler`."""
        warnings: list[str] = []
        try:
            response = await self._respond(request, user, warnings)
        except ApiError as error:
            response = failure_response(error)
        except Exception:  # noqa: BLE001 - the room's one supervisor: a bug fails its request, not the server
            _log.exception("request failed", extra={"method": request.method, "path": request.path})
            response = failure_response(internal_error("the server met an error of its own; its log says more"))
        if warnings:
            response = _with_warnings(response, warnings)
        return response

    async def _respond(self, request: Request, user: User, warnings: list[str]) -> Response:
        if len(request.body) > BODY_LIMIT:
            raise too_large(BODY_LIMIT)
        target = route(self.schema, request.method, request.path)
        user = self._admitted(request, user, target)
        if target is None:
            return self._documents.find(request) or _PAGE_NOT_FOUND
        try:
            answer = self._endpoints.serve(request, user, target, warnings)
        except FutureRevision as future:
            await self._wait_reached(future.revision)
            answer = self._endpoints.serve(request, user, target, warnings)
        except ApiError:
            if is_write(target.verb):
                await self._wait_committed()
            raise
        if isinstance(answer, WatchPlan):
            return Response(200, _WATCH_HEADERS, stream=self.watches.stream(answer))
        if is_write(target.verb):
            await self._wait_committed()
        return answer

    def _admitted(self, request: Request, user: User, target: Target | None) -> User:
        """The user to act as.

        Raises:
            Forbidden: They may not do this, or not be that user.
        """
        if isinstance(self._authorizer, AlwaysAllow) and "impersonate-user" not in request.headers:
            return user
        verb = "watch" if target is not None and is_watch(request, target) else target.verb if target else ""
        question = question_of(request, target, verb)
        user = impersonate(user, request.headers, question, self._authorizer)
        if not self._authorizer.allows(user, question):
            raise refusal(user, question)
        return user

    async def _wait_committed(self) -> None:
        """Wait for everything this request may have written or been told of."""
        if self._journal is not None:
            await self._journal.wait_settled(self.store.revision)

    async def _wait_reached(self, revision: int) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FUTURE_SECONDS
        while self.store.visible < revision:
            if loop.time() >= deadline:
                raise version_too_large(revision, self.store.visible)
            await asyncio.sleep(_POLL_SECONDS)


class Signal:
    """A listener that only notes that something has changed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def offer(self, change: Change) -> None:
        """Take note."""
        self._event.set()

    async def wait(self, seconds: float | None) -> None:
        """Wait for a change, but no longer than that."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        self._event.clear()


def _with_warnings(response: Response, warnings: list[str]) -> Response:
    """Add a header for each warning, said once."""
    headers = tuple(("Warning", f"299 - {quote(text)}") for text in dict.fromkeys(warnings))
    return replace(response, headers=(*response.headers, *headers))
