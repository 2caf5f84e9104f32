"""When to ask again, and after how long: only where asking again can help.

| what came back                            | asked again                                                          |
| ----------------------------------------- | -------------------------------------------------------------------- |
| 429 or 5xx with a Retry-After             | after that time, any verb: the server says it did nothing            |
| no answer (`Unreachable`)                 | after a backoff, and only what is safe to do twice: reads, applies   |
| everything else, `Conflict` foremost      | never: the caller must look again first                              |

Source: k8s.io/client-go/rest `withRetry`, v1.36.
"""

from dataclasses import dataclass
from random import Random

from skysail.api.errors import ApiError, SkysailError, Unreachable

_TOO_MANY_REQUESTS = 429
_SERVER_FAILED = 500


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How patient a client is.

    Attributes:
        max_retries: How often one call is repeated after the server said to come back later.
        max_reconnects: How often one call is repeated when no answer came.
        base_seconds: The first wait; each further one is twice as long.
        max_wait_seconds: No single wait is longer; a longer Retry-After ends the call with the error instead.
    """

    max_retries: int = 10
    max_reconnects: int = 2
    base_seconds: float = 0.1
    max_wait_seconds: float = 60.0

    def wait_seconds(self, error: SkysailError, attempt: int, *, safe: bool, rng: Random) -> float | None:
        """How long to wait before asking again; None when asking again cannot help.

        Args:
            error: What the last attempt ended with.
            attempt: How many attempts there were, 1 after the first.
            safe: Whether doing the request twice does no harm.
            rng: Spreads the waits of many clients.
        """
        if isinstance(error, Unreachable):
            if not safe or attempt > self.max_reconnects:
                return None
            backoff: float = self.base_seconds * 2 ** (attempt - 1)
            return min(backoff, self.max_wait_seconds) * (1 + 0.5 * rng.random())
        if not isinstance(error, ApiError) or attempt > self.max_retries:
            return None
        code = error.status.code or error.code
        if code != _TOO_MANY_REQUESTS and code < _SERVER_FAILED:
            return None
        asked = error.retry_after_seconds
        return float(asked) if 0 < asked <= self.max_wait_seconds else None


NO_RETRIES = RetryPolicy(max_retries=0, max_reconnects=0)
"""Every failure is the caller's at once."""
