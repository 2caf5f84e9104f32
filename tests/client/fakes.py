"""A server that answers from a script, and remembers what it was asked."""

import asyncio
from collections import deque

import msgspec
from aiohttp import web

from skysail.api.ports import Request, Response


def answer(body=None, status=200, headers=(), stream=None):
    """A JSON answer; bytes go out as they are."""
    encoded = body if isinstance(body, bytes) else msgspec.json.encode(body if body is not None else {})
    return Response(status, (("Content-Type", "application/json"), *headers), b"" if stream else encoded, stream)


def refusal(code, reason="", message="no", retry_after=None, **details):
    """A failure Status."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    if details:
        body["details"] = details
    return answer(body, code, (("Retry-After", str(retry_after)),) if retry_after else ())


def event(kind, obj):
    """One line of a watch."""
    return msgspec.json.encode({"type": kind, "object": obj}) + b"\n"


def watch(*chunks, then=None):
    """A watch that sends these chunks and ends, or goes on with `then()` (a coroutine function)."""

    async def stream():
        for chunk in chunks:
            yield chunk
        if then is not None:
            await then()

    return lambda: answer(stream=stream())


async def for_ever():
    """Silence."""
    await asyncio.Event().wait()


class FakeServer:
    """Answers `METHOD path` from a script: each answer once, the last one again and again."""

    def __init__(self):
        self.requests: list[Request] = []
        self.users = []
        self._script: dict[str, deque] = {}

    def on(self, call, *answers):
        """Script the answers to `GET /path`; a callable is called (and awaited) for its answer."""
        self._script[call] = deque(answers)
        return self

    async def handle(self, request, user):
        self.requests.append(request)
        self.users.append(user)
        script = self._script.get(f"{request.method} {request.path}")
        if not script:
            return refusal(404, "NotFound", f"nothing scripted for {request.method} {request.path}")
        given = script.popleft() if len(script) > 1 else script[0]
        if callable(given):
            given = given()
        return await given if asyncio.iscoroutine(given) else given

    @property
    def last(self):
        """The newest request."""
        return self.requests[-1]

    def last_json(self):
        """The newest request's body."""
        return msgspec.json.decode(self.last.body)


def as_application(handler):
    """The same server over HTTP."""

    async def serve(http):
        headers = {name.lower(): value for name, value in http.headers.items()}
        query = tuple(http.query.items())
        response = await handler.handle(Request(http.method, http.path, query, headers, await http.read()), None)
        if response.stream is None:
            return web.Response(status=response.status, headers=response.headers, body=response.body)
        outgoing = web.StreamResponse(status=response.status, headers=response.headers)
        await outgoing.prepare(http)
        async for chunk in response.stream:
            await outgoing.write(chunk)
        return outgoing

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", serve)
    return application
