"""Failure answers: each of upstream's error constructors, and the Status body that goes over the wire.

Everything that refuses a request raises an `ApiError` made here (or directly, where the words are the caller's own);
the server turns it into an answer once, with `failure_response`.

    >>> not_found(GroupResource("apps", "deployments"), "web").status.message
    'deployments.apps "web" not found'

Source: apimachinery/pkg/api/errors/errors.go and apiserver/pkg/endpoints/handlers/responsewriters, v1.36.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from skysail.api.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestTimeout,
    Status,
    StatusCause,
    StatusDetails,
    TooLarge,
    Unauthorized,
    UnsupportedMediaType,
)
from skysail.api.ports import Response
from skysail.api.raw import Raw
from skysail.apiserver.contract import FieldError, GroupResource, quote

OPTIMISTIC_LOCK = "the object has been modified; please apply your changes to the latest version and try again"
JSON_HEADERS = (("Cache-Control", "no-cache, private"), ("Content-Type", "application/json"))
READABLE = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_NO_METADATA: Mapping[str, Any] = {}


def _about(resource: GroupResource, name: str, **more: Any) -> StatusDetails:
    return StatusDetails(name=name, group=resource.group, kind=resource.resource, **more)


def not_found(resource: GroupResource, name: str) -> NotFound:
    """404: there is no such object."""
    return NotFound(f"{resource} {quote(name)} not found", details=_about(resource, name))


def unknown_resource() -> NotFound:
    """404: there is no such resource in a group version that exists."""
    return NotFound("the server could not find the requested resource", details=StatusDetails())


def already_exists(resource: GroupResource, name: str) -> AlreadyExists:
    """409: an object of that name is there."""
    return AlreadyExists(f"{resource} {quote(name)} already exists", details=_about(resource, name))


def name_not_unique(resource: GroupResource, name: str) -> AlreadyExists:
    """409: a generated name was taken."""
    message = (
        f"{resource} {quote(name)} already exists, the server was not able to generate a unique name for the object"
    )
    return AlreadyExists(message, details=_about(resource, name, retry_after_seconds=1))


def conflict(resource: GroupResource, name: str, why: str = OPTIMISTIC_LOCK) -> Conflict:
    """409: what the request assumed is no longer so. `resource.resource` may be a Kind, as upstream does in deletes."""
    message = f"Operation cannot be fulfilled on {resource} {quote(name)}: {why}"
    return Conflict(message, details=_about(resource, name))


def forbidden_error(resource: GroupResource, name: str, why: str) -> Forbidden:
    """403: admission refuses."""
    about = f"{resource} {quote(name)}" if name else str(resource)
    return Forbidden(f"{about} is forbidden: {why}", details=_about(resource, name))


def invalid_object(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> Invalid:
    """422: the object breaks rules, one cause each; equal messages are said once."""
    messages = tuple(dict.fromkeys(str(error) for error in errors))
    message = f"{kind}.{group} {quote(name)} is invalid" if group else f"{kind} {quote(name)} is invalid"
    if messages:
        message += ": " + (messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]")
    causes = tuple(StatusCause(reason=error.reason, message=error.body, field=error.field) for error in errors)
    return Invalid(message, details=StatusDetails(name=name, group=group, kind=kind, causes=causes))


def unprocessable() -> Invalid:
    """422 without particulars: a JSON patch that cannot be applied."""
    return Invalid("the server rejected our request due to an error in our request", details=StatusDetails())


def bad_request(message: str) -> BadRequest:
    """400: the request makes no sense."""
    return BadRequest(message)


def method_not_allowed() -> MethodNotAllowed:
    """405: the path is known, but not with this method."""
    return MethodNotAllowed("the server does not allow this method on the requested resource", details=StatusDetails())


def create_while_terminating(resource: GroupResource) -> MethodNotAllowed:
    """405: the definition of a custom resource is under deletion."""
    details = StatusDetails(group=resource.group, kind=resource.resource)
    return MethodNotAllowed("create not allowed while custom resource definition is terminating", details=details)


def not_acceptable(*, with_parameters: bool = False) -> NotAcceptable:
    """406: none of the media types in Accept can be given, or not with these parameters."""
    if with_parameters:
        return NotAcceptable(f"only the following media types are accepted: {READABLE}")
    offered = f"{READABLE}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    return NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {offered}", details=StatusDetails())


def unsupported_media_type() -> UnsupportedMediaType:
    """415: the body's content type cannot be read."""
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {READABLE}"
    )


def unsupported_patch_type(accepted: Sequence[str] = ()) -> UnsupportedMediaType:
    """415: a PATCH of an unknown kind; custom resources name what they accept."""
    if accepted:
        offered = ", ".join(accepted)
        return UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {offered}"
        )
    return UnsupportedMediaType("415: Unsupported Media Type", details=StatusDetails())


def unauthorized() -> Unauthorized:
    """401: no token, or one that is not known."""
    return Unauthorized("Unauthorized")


def too_large(limit: int) -> TooLarge:
    """413: the body is over the limit in bytes."""
    return TooLarge(f"Request entity too large: limit is {limit}")


def plain_error(message: str) -> ApiError:
    """500 with the message as it stands and no reason: what upstream answers to an untyped error."""
    return ApiError(Status(message=message, code=500))


def internal_error(message: str) -> InternalError:
    """500: the server failed."""
    return InternalError(
        f"Internal error occurred: {message}", details=StatusDetails(causes=(StatusCause(message=message),))
    )


def version_too_large(asked: int, current: int) -> RequestTimeout:
    """504: a resourceVersion this server has not reached."""
    cause = StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version")
    return RequestTimeout(
        f"Timeout: Too large resource version: {asked}, current: {current}",
        details=StatusDetails(causes=(cause,), retry_after_seconds=1),
    )


def list_expired() -> Expired:
    """410: the version asked for has been compacted."""
    return Expired("The resourceVersion for the provided list is too old.")


def continue_expired(token: str) -> Expired:
    """410: the list a continue token belongs to is gone; `token` goes on inconsistently."""
    message = (
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    return Expired(Status(message=message, reason="Expired", code=410, metadata={"continue": token}))


def watch_expired(asked: int, oldest: int) -> Expired:
    """410, sent as an ERROR event: the watch would begin before the window."""
    return Expired(f"too old resource version: {asked} ({oldest})")


def status_document(status: Status) -> Raw:
    """The Status object as clients read it."""
    document: Raw = {
        "kind": "Status", "apiVersion": "v1", "metadata": status.metadata, "status": status.status,
    }  # fmt: skip
    if status.message:
        document["message"] = status.message
    if status.reason:
        document["reason"] = status.reason
    if status.details is not None:
        document["details"] = status.details
    if status.code:
        document["code"] = status.code
    return document


def failure_response(error: ApiError) -> Response:
    """The answer to a request that was refused."""
    status = error.status
    code = status.code or 500
    headers: tuple[tuple[str, str], ...] = JSON_HEADERS
    if error.retry_after_seconds:
        headers = (*headers, ("Retry-After", str(error.retry_after_seconds)))
    return Response(status=code, headers=headers, body=msgspec.json.encode(status_document(status)))


def deleted_status(resource: GroupResource, name: str, uid: str) -> Raw:
    """The Status Success that a DELETE answers when the object went at once."""
    details = {"name": name, "group": resource.group, "kind": resource.resource, "uid": uid}
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": _NO_METADATA, "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }  # fmt: skip
