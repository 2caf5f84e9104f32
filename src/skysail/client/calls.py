"""One call: its headers, its time-out, its repetitions, its typed failure."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from random import Random

import msgspec

from skysail import __version__
from skysail.api.errors import ApiError, SkysailError, StatusDetails, TooManyRequests, error_from_response
from skysail.api.ports import Request, Response, Transport
from skysail.client.retry import RetryPolicy

Query = tuple[tuple[str, str], ...]

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class ClientStatistics:
    """What a client has done since it was made.

    Attributes:
        requests: Requests sent, repeated ones and opened watches included.
        retries: Requests that were repeated.
        failures: Calls that ended with an error.
    """

    requests: int
    retries: int
    failures: int


class Caller:
    """Sends requests for one component.

    Args:
        transport: How bytes get there.
        user_agent: The component's name.
        rng: Spreads repeated requests.
        timeout_seconds: How long one attempt may take.
        retries: When to ask again.
    """

    def __init__(
        self, transport: Transport, user_agent: str, rng: Random, timeout_seconds: float, retries: RetryPolicy
    ) -> None:
        self._transport, self._rng, self._timeout, self._retries = transport, rng, timeout_seconds, retries
        self._headers = {"accept": _JSON, "user-agent": f"{user_agent} skysail/{__version__}"}
        self._with_body: dict[str, dict[str, str]] = {}
        self._requests = self._repeated = self._failed = 0

    def statistics(self) -> ClientStatistics:
        """What was sent so far."""
        return ClientStatistics(self._requests, self._repeated, self._failed)

    def stream(self, path: str, query: Query) -> AsyncIterator[bytes]:
        """Open a watch; never repeated here, because only its reader knows where to go on."""
        self._requests += 1
        return self._transport.stream(Request("GET", path, query, self._headers, timeout_seconds=self._timeout))

    async def call(
        self,
        what: str,
        method: str,
        path: str,
        query: Query = (),
        *,
        body: bytes = b"",
        content_type: str = _JSON,
        safe: bool = False,
        refusal_is_final: bool = False,
    ) -> Response:
        """Send a request, again where that can help, and give back its successful answer.

        Args:
            what: The call, for people (`patch pods default/web`).
            method: Upper-case HTTP method.
            path: Not percent-encoded.
            query: Parameters in order.
            body: Encoded.
            content_type: Of the body.
            safe: Whether doing it twice does no harm.
            refusal_is_final: Whether a 429 is an answer rather than "come back later".

        Raises:
            ApiError: The server said no.
            Unreachable: It said nothing.
        """
        headers = self._headers
        if body:
            known = self._with_body.get(content_type)
            headers = known or self._with_body.setdefault(content_type, {**headers, "content-type": content_type})
        request = Request(method, path, query, headers, body, self._timeout)
        attempt = 0
        while True:
            attempt += 1
            self._requests += 1
            try:
                response = await self._transport.request(request)
                if response.status < 400:
                    return response
                raise failure(response, what)
            except SkysailError as error:
                final = refusal_is_final and isinstance(error, TooManyRequests)
                wait = None if final else self._retries.wait_seconds(error, attempt, safe=safe, rng=self._rng)
                if wait is None:
                    self._failed += 1
                    raise
            self._repeated += 1
            await asyncio.sleep(wait)


def failure(response: Response, what: str) -> ApiError:
    """The typed error of a failed answer, with the wait its Retry-After header asks for."""
    error = error_from_response(response.status, response.body, what)
    header = response.header("retry-after") or ""
    if not error.retry_after_seconds and header.isdecimal():
        details = error.status.details or StatusDetails()
        details = msgspec.structs.replace(details, retry_after_seconds=int(header))
        error = type(error)(msgspec.structs.replace(error.status, details=details), request=what)
    return error


def query_of(**parameters: str) -> Query:
    """The parameters that say anything."""
    return tuple((name, value) for name, value in parameters.items() if value)
