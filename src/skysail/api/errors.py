"""Every error Skysail raises on purpose, in one tree.

    SkysailError
      ConfigError        what a user wrote cannot be used: says file, field path, value, what is allowed
      Unreachable        no answer from the API server: a retry may help
      InvariantBroken    a bug of ours, with the story that led to it
      ApiError           the API server answered with a failure Status
        BadRequest 400 · Unauthorized 401 · Forbidden 403 · NotFound 404 · MethodNotAllowed 405 · NotAcceptable 406
        Conflict 409 · AlreadyExists 409 · Expired 410 · TooLarge 413 · UnsupportedMediaType 415 · Invalid 422
        TooManyRequests 429 · InternalError 500 · ServiceUnavailable 503 · ServerTimeout 504 · RequestTimeout 504

"Does not fit" is never an exception: the scheduler answers with a value. Third-party exceptions are translated once, in
`client/`.

Source: k8s.io/apimachinery/pkg/apis/meta/v1 `StatusReason`, v1.36.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

NAMESPACE_TERMINATING = "NamespaceTerminating"
"""The cause in a refusal's details (core/v1 `NamespaceTerminatingCause`)."""


class SkysailError(Exception):
    """The root: catch this to catch everything Skysail raises on purpose."""


class ConfigError(SkysailError):
    """User input that cannot be used, named exactly.

    Args:
        message: What is wrong and what would be accepted.
        file: Where it stands, if it came from a file.
        path: The field, as `profiles[0].plugins.score.enabled[2].weight`.
    """

    def __init__(self, message: str, *, file: str = "", path: str = "") -> None:
        self.message, self.file, self.path = message, file, path
        super().__init__(": ".join(part for part in (file, path, message) if part))


class Unreachable(SkysailError):
    """The API server gave no answer: refused, reset, timed out, or went silent in the middle of a watch."""


class InvariantBroken(SkysailError):
    """A state that cannot be: a bug in Skysail, never the user's fault."""


class StatusCause(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reason among several why a request failed, usually with the field it concerns."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a failure Status is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """The body of every failed API request (metav1.Status)."""

    status: str = "Failure"
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: int = 0
    metadata: Mapping[str, Any] = {}


class ApiError(SkysailError):
    """The API server said no.

    Attributes:
        status: The server's own Status; `status.message` is what it said.
        request: The verb and thing asked for, for people (`patch pods default/web`); may be empty.
        code: The HTTP status code this class stands for, when the Status names none.
        reason: The `StatusReason` this class stands for.
    """

    code: ClassVar[int] = 500
    reason: ClassVar[str] = ""

    def __init__(self, message: str | Status = "", *, request: str = "", details: StatusDetails | None = None) -> None:
        if isinstance(message, str):
            message = Status(message=message, reason=self.reason, code=self.code, details=details)
        self.status = message
        self.request = request
        super().__init__(f"{request}: {message.message}" if request else message.message)

    @property
    def retry_after_seconds(self) -> int:
        """How long the server asked us to wait; 0 when it did not say."""
        return self.status.details.retry_after_seconds if self.status.details else 0

    @property
    def is_namespace_terminating(self) -> bool:
        """Whether a creation was refused because its namespace is on its way out: no other try can help."""
        details = self.status.details
        return details is not None and any(cause.reason == NAMESPACE_TERMINATING for cause in details.causes)


class BadRequest(ApiError):
    """400: the request makes no sense as it stands."""

    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    """401: who are you?"""

    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    """403: authorisation or admission refuses."""

    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    """404: no such object, or no such resource."""

    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    """405: the resource does not know this verb."""

    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    """406: none of the asked-for media types can be given."""

    code, reason = 406, "NotAcceptable"


class Conflict(ApiError):
    """409: the object has moved on; read it again."""

    code, reason = 409, "Conflict"


class AlreadyExists(ApiError):
    """409: an object of that name is there."""

    code, reason = 409, "AlreadyExists"


class Expired(ApiError):
    """410: that resourceVersion (or continue token) is too old; list again."""

    code, reason = 410, "Expired"


class TooLarge(ApiError):
    """413: the request's body is over the limit."""

    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    """415: the body's content type is not understood."""

    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    """422: the object breaks a rule; `status.details.causes` name the fields."""

    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    """429: slow down (`retry_after_seconds`), or an eviction a disruption budget refuses."""

    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    """500: the server failed."""

    code, reason = 500, "InternalError"


class ServiceUnavailable(ApiError):
    """503: not ready, or going down."""

    code, reason = 503, "ServiceUnavailable"


class ServerTimeout(ApiError):
    """504: the server could not finish in time; try again."""

    code, reason = 504, "ServerTimeout"


class RequestTimeout(ApiError):
    """504: the request ran out of its own time (reason `Timeout`)."""

    code, reason = 504, "Timeout"


_BY_REASON: Mapping[str, type[ApiError]] = {
    cls.reason: cls
    for cls in (
        BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable, Conflict, AlreadyExists,
        Expired, TooLarge, UnsupportedMediaType, Invalid, TooManyRequests, InternalError, ServiceUnavailable,
        ServerTimeout, RequestTimeout,
    )
} | {"Gone": Expired}  # fmt: skip
_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest, 401: Unauthorized, 403: Forbidden, 404: NotFound, 405: MethodNotAllowed, 406: NotAcceptable,
    409: Conflict, 410: Expired, 413: TooLarge, 415: UnsupportedMediaType, 422: Invalid, 429: TooManyRequests,
    500: InternalError, 503: ServiceUnavailable, 504: ServerTimeout,
}  # fmt: skip


def error_from_status(status: Status, request: str = "") -> ApiError:
    """The typed error for a failure Status: by its reason, else by its code, else a plain `ApiError`."""
    cls = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code) or ApiError
    return cls(status, request=request)


def error_from_response(code: int, body: bytes, request: str = "") -> ApiError:
    """The typed error for any failed answer; a body that is no Status becomes the message."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except msgspec.DecodeError:
        status = Status(message=body[:1024].decode("utf-8", "replace").strip() or f"HTTP {code}", code=code)
    if not status.code:
        status = msgspec.structs.replace(status, code=code)
    return error_from_status(status, request)
