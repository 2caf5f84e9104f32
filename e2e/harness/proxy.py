"""A wire to a server that can be cut: for networks that fail where no network namespace can be made.

| state      | what happens to bytes                                    | what new connections see |
| ---------- | -------------------------------------------------------- | ------------------------ |
| WHOLE      | they pass                                                | the server               |
| CUT        | every open connection is reset                           | a reset                  |
| SILENT     | they wait, both ways; nobody is told                     | nothing at all           |
| ANSWERLESS | requests arrive and are carried out; answers wait        | nothing at all           |
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum, auto

HOST = "127.0.0.1"
_CHUNK = 1 << 16


class Wire(Enum):
    """What the wire does."""

    WHOLE = auto()
    CUT = auto()
    SILENT = auto()
    ANSWERLESS = auto()


class TcpProxy:
    """Listens on a port of its own and passes everything on to a server, while the wire is whole.

    Args:
        port: The server's, on loopback.
    """

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._wire = Wire.WHOLE
        self._changed = asyncio.Event()
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0

    @property
    def connections(self) -> int:
        """How many connections of clients are open."""
        return len(self._open) // 2

    def set(self, wire: Wire) -> None:
        """Change the wire; from WHOLE on, bytes that waited arrive."""
        self._wire = wire
        self._changed.set()
        self._changed = asyncio.Event()
        if wire is Wire.CUT:
            self.reset()

    def reset(self) -> None:
        """Reset every open connection; what waited in it is lost."""
        for writer in list(self._open):
            writer.transport.abort()
        self._open.clear()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["TcpProxy"]:
        """Serve until the block is left."""
        server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.reset()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._wire is Wire.CUT:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection(HOST, self._server_port)
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, back}
        self._open |= ends
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, back, (Wire.WHOLE, Wire.ANSWERLESS)))
                group.create_task(self._pump(there, writer, (Wire.WHOLE,)))
        except* OSError:
            pass
        finally:
            self._open -= ends
            for each in ends:
                each.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, passing: tuple[Wire, ...]
    ) -> None:
        while data := await source.read(_CHUNK):
            while self._wire not in passing:
                await self._changed.wait()
            target.write(data)
            await target.drain()
        raise ConnectionResetError  # one end has closed: so does the other
