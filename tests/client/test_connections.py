"""One connection, one request at a time: what the small HTTP client promises, against a server that plays any trick."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from skysail.client.connections import BrokenOff, ConnectionPool

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
ASKED = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"


class Scripted:
    """A server that gives each request the next answer; a None closes instead."""

    def __init__(self, *answers):
        self.answers, self.connections, self.requests = list(answers), 0, 0
        self.left = asyncio.Event()

    async def serve(self, reader, writer):
        self.connections += 1
        while await reader.readuntil(b"\r\n\r\n"):
            self.requests += 1
            answer = self.answers.pop(0)
            for piece in answer if isinstance(answer, tuple) else (answer,):
                if piece is None:
                    return
                writer.write(piece)
                await writer.drain()


@asynccontextmanager
async def pool_of(server, limit=4):
    handlers = set()

    async def handle(reader, writer):
        handlers.add(asyncio.current_task())
        try:
            await server.serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            server.left.set()
        finally:
            writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as listening:
        pool = ConnectionPool("127.0.0.1", listening.sockets[0].getsockname()[1], None, "", limit)
        try:
            yield pool
        finally:
            pool.close()
            for each in handlers:
                each.cancel()
            await asyncio.wait(handlers)
            await asyncio.sleep(0)


async def asked(*answers, times=1):
    server = Scripted(*answers)
    async with pool_of(server) as pool:
        responses = [await pool.request(ASKED) for _ in range(times)]
    return responses, server


async def test_a_connection_is_used_again():
    responses, server = await asked(OK, OK, OK, times=3)
    assert [(each.status, each.body) for each in responses] == [(200, b"ok")] * 3
    assert server.connections == 1


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        ((b"HTTP/1.1 200 OK\r\ncontent-le", b"ngth: 4\r\n\r\nab", b"cd"), b"abcd"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n", b"abcd"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
async def test_answers_in_every_form(answer, body):
    (first, second), server = await asked(answer, OK, times=2)
    assert (first.body, second.body, server.connections) == (body, b"ok", 1)
    assert "link" not in dict(first.headers)


@pytest.mark.parametrize(
    "answer",
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok", None),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", None),
        (b"HTTP/1.1 200 OK\r\n\r\nok", None),
    ],
)
async def test_a_connection_that_the_answer_ends_is_not_used_again(answer):
    (first, second), server = await asked(answer, OK, times=2)
    assert (first.body, second.body, server.connections) == (b"ok", b"ok", 2)


@pytest.mark.parametrize(
    "answer",
    [
        None,
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok", None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n", None),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n", None),
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nxxx",
    ],
)
async def test_a_broken_answer_fails_once_and_the_next_request_gets_a_new_connection(answer):
    server = Scripted(answer, OK)
    async with pool_of(server) as pool:
        with pytest.raises(BrokenOff):
            await pool.request(ASKED)
        assert (await pool.request(ASKED)).body == b"ok"
    assert (server.requests, server.connections) == (2, 2), "nothing is sent twice"


async def test_a_connection_whose_answer_was_not_awaited_is_closed():
    server = Scripted(b"", OK)
    async with pool_of(server) as pool:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await pool.request(ASKED)
        assert (await pool.request(ASKED)).body == b"ok"
        await server.left.wait()
    assert server.connections == 2


async def test_what_the_server_says_unasked_closes_the_connection():
    server = Scripted((OK, b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"), OK)
    async with pool_of(server) as pool:
        assert (await pool.request(ASKED)).status == 200
        await server.left.wait()
        assert (await pool.request(ASKED)).status == 200
    assert server.connections == 2


async def test_an_idle_connection_that_has_grown_old_is_left():
    server = Scripted(OK, OK)
    async with pool_of(server) as pool:
        await pool.request(ASKED)
        pool._idle[0].idle_since -= 20
        await pool.request(ASKED)
    assert server.connections == 2


class Held:
    """Answers when told to, and remembers who came when."""

    def __init__(self, awaited):
        self.release, self.order, self.busy, self.most = asyncio.Semaphore(0), [], 0, 0
        self.awaited, self.came, self.left = awaited, asyncio.Event(), asyncio.Event()

    async def serve(self, reader, writer):
        while head := await reader.readuntil(b"\r\n\r\n"):
            self.order.append(head.split()[1].decode())
            if len(self.order) == self.awaited:
                self.came.set()
            self.busy += 1
            self.most = max(self.most, self.busy)
            await self.release.acquire()
            self.busy -= 1
            writer.write(OK)


async def test_no_more_connections_than_allowed_and_first_come_first_served():
    server = Held(awaited=2)
    async with pool_of(server, limit=2) as pool, asyncio.TaskGroup() as group:
        tasks = [group.create_task(pool.request(ASKED.replace(b"/", b"/%d" % n, 1))) for n in range(6)]
        await server.came.wait()
        tasks[3].cancel()
        for _ in range(5):
            server.release.release()
    assert server.most == 2
    assert server.order[2:] == ["/2", "/4", "/5"]


async def test_who_is_cancelled_just_when_its_turn_comes_passes_it_on():
    server = Scripted(OK, OK)
    async with pool_of(server, limit=1) as pool, asyncio.TaskGroup() as group:
        await pool.request(ASKED)
        connection = pool._take_idle()
        pool._busy.add(connection)
        second, third = (group.create_task(pool.request(ASKED)) for _ in range(2))
        await asyncio.sleep(0)
        pool._busy.discard(connection)
        pool._give_back(connection)
        second.cancel()
        assert (await third).body == b"ok"
    assert second.cancelled()
    assert (server.requests, server.connections) == (2, 1)


async def test_after_another_tls_context_was_given_no_old_connection_is_used():
    server = Held(awaited=1)
    async with pool_of(server) as pool, asyncio.TaskGroup() as group:
        under_way = group.create_task(pool.request(ASKED))
        await server.came.wait()
        pool.use_tls(None)
        server.release.release()
        assert (await under_way).body == b"ok"
        assert not pool._idle


async def test_who_is_cancelled_with_leave_to_open_passes_it_on():
    server = Scripted(OK)
    async with pool_of(server, limit=1) as pool, asyncio.TaskGroup() as group:
        pool._opening = 1
        second, third = (group.create_task(pool.request(ASKED)) for _ in range(2))
        await asyncio.sleep(0)
        pool._opening = 0
        pool._let_open()
        second.cancel()
        assert (await third).body == b"ok"
    assert second.cancelled()
    assert (server.requests, pool._opening) == (1, 0)


async def test_a_burst_is_served_by_few_connections():
    server = Scripted(*[OK] * 64)
    async with pool_of(server, limit=64) as pool, asyncio.TaskGroup() as group:
        for _ in range(64):
            group.create_task(pool.request(ASKED))
    assert server.requests == 64
    assert server.connections < 64


async def test_a_slow_server_gets_all_connections():
    server = Held(awaited=8)
    async with pool_of(server, limit=8) as pool, asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(pool.request(ASKED))
        await server.came.wait()
        for _ in range(20):
            server.release.release()
    assert server.most == 8


async def test_connections_that_fail_to_open_leave_nobody_waiting():
    pool = ConnectionPool("127.0.0.1", 1, None, "", 4)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(failure_of(pool)) for _ in range(12)]
    assert all(isinstance(task.result(), OSError) for task in tasks)
    assert pool._opening == 0


async def failure_of(pool):
    try:
        await pool.request(ASKED)
    except OSError as error:
        return error


async def test_closing_ends_requests_under_way():
    server = Held(awaited=1)
    async with pool_of(server) as pool, asyncio.TaskGroup() as group:
        task = group.create_task(expect_broken(pool))
        await server.came.wait()
        pool.close()
        await task


async def expect_broken(pool):
    with pytest.raises(BrokenOff):
        await pool.request(ASKED)


async def test_nobody_listening_is_an_error_and_costs_no_place():
    pool = ConnectionPool("127.0.0.1", 1, None, "", 1)
    for _ in range(3):
        with pytest.raises(OSError, match=r"(?i)connect"):
            await pool.request(ASKED)
