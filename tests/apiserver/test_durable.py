"""A data directory: what was acknowledged is there after any death, revisions are never given twice."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from skysail.api.errors import ConfigError
from skysail.api.ports import Request, Response
from skysail.apiserver.authentication import ADMIN
from skysail.apiserver.contract import GroupResource
from skysail.apiserver.durable import FILE_NAME, CommitFailed, Database, Journal
from skysail.apiserver.server import ApiServer
from skysail.apiserver.store import Change, Store
from skysail.simulator.clock import WallClock, run_virtual

MAPS = GroupResource("", "configmaps")
PATH = "/api/v1/namespaces/default/configmaps"


def open_server(directory: Path) -> ApiServer:
    return ApiServer(clock=WallClock(), rng=Random(1), data_dir=directory)


async def post(server: ApiServer, name: str) -> Response:
    body = json.dumps({"metadata": {"name": name}, "data": {"k": name}}).encode()
    return await server.handle(Request("POST", PATH, body=body), ADMIN)


async def names(server: ApiServer) -> list[str]:
    response = await server.handle(Request("GET", PATH), ADMIN)
    return [item["metadata"]["name"] for item in json.loads(response.body)["items"]]


def revision(response: Response) -> int:
    return int(json.loads(response.body)["metadata"]["resourceVersion"])


async def test_objects_outlive_the_server_and_revisions_go_on_above(tmp_path: Path) -> None:
    async with open_server(tmp_path).running() as server:
        last = revision(await post(server, "a"))
        await post(server, "gone")
        await server.handle(Request("DELETE", f"{PATH}/gone"), ADMIN)
        highest = server.store.revision
    async with open_server(tmp_path).running() as server:
        assert await names(server) == ["a"]
        assert revision(await server.handle(Request("GET", f"{PATH}/a"), ADMIN)) == last
        assert server.store.visible >= highest
        assert revision(await post(server, "b")) > highest


async def test_a_restart_creates_its_first_objects_only_once(tmp_path: Path) -> None:
    uids = []
    for _ in range(2):
        async with open_server(tmp_path).running() as server:
            response = await server.handle(Request("GET", "/api/v1/namespaces/default"), ADMIN)
            uids.append(json.loads(response.body)["metadata"]["uid"])
    assert uids[0] == uids[1]


async def test_a_watch_from_before_the_restart_is_told_to_list_again(tmp_path: Path) -> None:
    async with open_server(tmp_path).running() as server:
        old = revision(await post(server, "a"))
    async with open_server(tmp_path).running() as server:
        query = (("watch", "1"), ("resourceVersion", str(old)))
        response = await server.handle(Request("GET", PATH, query), ADMIN)
        assert response.stream is not None
        lines = [json.loads(chunk) async for chunk in response.stream]
    assert [line["object"]["code"] for line in lines] == [410]


def test_a_directory_of_another_version_is_refused_by_name(tmp_path: Path) -> None:
    Database(tmp_path).close()
    connection = sqlite3.connect(tmp_path / FILE_NAME)
    connection.execute("UPDATE meta SET value='skysail-store-99' WHERE name='format'")
    connection.commit()
    connection.close()
    with pytest.raises(ConfigError, match="skysail-store-99"):
        Database(tmp_path)


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"something else altogether" * 100)
    with pytest.raises(ConfigError, match="cannot use the data directory"):
        Database(tmp_path)


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    first = Database(tmp_path)
    with pytest.raises(ConfigError, match="another server is using it"):
        Database(tmp_path)
    first.close()


def test_a_store_damaged_in_the_middle_is_refused(tmp_path: Path) -> None:
    store, database = Store(), Database(tmp_path)
    database.write([Change(MAPS, n, None, store.put(MAPS, _document(f"m{n}"), {})) for n in range(1, 400)], None)
    database.close()
    file = tmp_path / FILE_NAME
    content = file.read_bytes()
    file.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
    with pytest.raises(ConfigError, match=r"skysail\.db: cannot use the data directory"):
        open_server(tmp_path)


@pytest.mark.parametrize("spare_pages", [1, 2, 3, 4])
async def test_a_disk_too_full_to_start_on_is_refused(
    tmp_path: Path, spare_pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, made = sqlite3.connect, []

    def small(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.execute(f"PRAGMA max_page_count={spare_pages + 1}")
        made.append(connection)
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    with pytest.raises(ConfigError, match="cannot use the data directory: database or disk is full"):
        async with open_server(tmp_path).running():
            pass
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("SELECT 1")


class Failing:
    """A committer whose disk is full for a while; it also notes what it was given."""

    def __init__(self) -> None:
        self.full = False
        self.batches: list[list[int]] = []

    async def commit(self, changes: Sequence[Change]) -> None:
        self.batches.append([change.revision for change in changes])
        await asyncio.sleep(1)
        if self.full:
            raise CommitFailed("database or disk is full")


def test_a_full_disk_fails_the_writes_it_held_and_those_built_on_them_and_no_others() -> None:
    async def main() -> None:
        store, disk = Store(), Failing()
        journal = Journal(store, disk)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(journal.run())
            first = store.put(MAPS, _document("a"), {}).revision
            await journal.wait_settled(first)
            disk.full = True
            lost = [store.put(MAPS, _document(name), {}).revision for name in ("b", "c")]
            results = [group.create_task(_outcome(journal, each)) for each in lost]
            await asyncio.sleep(0.5)
            results.append(group.create_task(_outcome(journal, store.put(MAPS, _document("b"), {}).revision)))
            assert [await each for each in results] == ["full"] * 3
            disk.full = False
            after = store.put(MAPS, _document("b"), {}).revision
            assert await _outcome(journal, after) == "written"
            assert after > max(lost)
            running.cancel()
        assert [record.name for record in store.list(MAPS)] == ["a", "b"]

    run_virtual(main())


def test_writes_that_arrive_during_a_commit_share_the_next_one() -> None:
    async def main() -> list[list[int]]:
        store, disk = Store(), Failing()
        journal = Journal(store, disk)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(journal.run())
            store.put(MAPS, _document("a"), {})
            await asyncio.sleep(0.5)
            for name in "bcd":
                store.put(MAPS, _document(name), {})
            assert store.visible == 0
            await journal.wait_settled(store.revision)
            running.cancel()
        return disk.batches

    assert run_virtual(main()) == [[1], [2, 3, 4]]


def _document(name: str) -> dict[str, object]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}}


async def _outcome(journal: Journal, revision: int) -> str:
    from skysail.api.errors import InternalError

    try:
        await journal.wait_settled(revision)
    except InternalError as error:
        return "full" if "full" in str(error) else str(error)
    return "written"


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    store, database = Store(), Database(tmp_path)
    good = Change(MAPS, 1, None, store.put(MAPS, _document("a"), {}))
    bad = Change(MAPS, 2, None, store.put(MAPS, {**_document("b"), "kind": "ConfigMap"}, {}))
    database._connection.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON objects WHEN NEW.key='default/b' BEGIN SELECT RAISE(ABORT, 'full'); END"
    )
    with pytest.raises(CommitFailed, match="full"):
        database.write([good, bad], None)
    assert list(database.load()) == []
    database.write([good], None)
    assert [stored.revision for stored in database.load()] == [1]
    database.close()


WRITER = """
import asyncio, json, sys
from pathlib import Path
from random import Random
from skysail.api.ports import Request
from skysail.apiserver.authentication import ADMIN
from skysail.apiserver.server import ApiServer
from skysail.simulator.clock import WallClock

async def main():
    server = ApiServer(clock=WallClock(), rng=Random(int(sys.argv[2])), data_dir=Path(sys.argv[1]))
    async with server.running():
        async def write(lane):
            for number in range(100000):
                name = f"{sys.argv[2]}-{lane}-{number}"
                body = json.dumps({"metadata": {"name": name}}).encode()
                answer = await server.handle(Request("POST", "/api/v1/namespaces/default/configmaps", body=body), ADMIN)
                version = json.loads(answer.body)["metadata"]["resourceVersion"]
                print(name, version, flush=True)
        async with asyncio.TaskGroup() as group:
            for lane in range(4):
                group.create_task(write(lane))

asyncio.run(main())
"""


def test_killed_at_any_moment_nothing_acknowledged_is_lost_and_no_revision_given_twice(tmp_path: Path) -> None:
    acknowledged: dict[str, int] = {}
    for life in range(3):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(life)], stdout=subprocess.PIPE, text=True, env=os.environ
        )
        assert process.stdout is not None
        for _ in range(40 + 17 * life):
            name, version = process.stdout.readline().split()
            acknowledged[name] = int(version)
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read()
        process.stdout.close()
        process.wait()
        for line in rest.splitlines(keepends=True):
            if line.endswith("\n"):
                name, version = line.split()
                acknowledged[name] = int(version)
    assert len(set(acknowledged.values())) == len(acknowledged)

    async def check() -> None:
        async with open_server(tmp_path).running() as server:
            stored = await names(server)
            assert set(acknowledged) <= set(stored)
            assert server.store.visible > max(acknowledged.values())

    asyncio.run(check())
