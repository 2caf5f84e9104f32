"""Lists at the right version, in pages.

    resourceVersion  match          what is shown
    absent           -              the current state
    0, N             NotOlderThan   the current state, once it has reached N
    N                Exact          the state at N, as long as it is remembered
    (in a token)     -              the state of the first page; once that is forgotten, 410 with a token that goes on
                                    from the same place in the current state

Source: apiserver/pkg/storage/{interfaces,continue}.go, v1.36.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from skysail.api.raw import Raw
from skysail.apiserver.contract import GroupResource, quote
from skysail.apiserver.requests import ListOptions
from skysail.apiserver.status import bad_request, continue_expired, list_expired, plain_error
from skysail.apiserver.store import Record, Store
from skysail.apiserver.watching import Matcher

_TOKEN_VERSION = "meta.k8s.io/v1"


class FutureRevision(Exception):
    """The state asked for has not come about; the shell waits a while and then refuses."""

    def __init__(self, revision: int) -> None:
        self.revision = revision
        super().__init__(f"revision {revision} lies ahead")


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


@dataclass(slots=True)
class Page:
    """What a list answers.

    Attributes:
        metadata: Of the list: resourceVersion, continue, remainingItemCount.
    """

    records: Sequence[Record]
    metadata: Raw


def parse_revision(text: str) -> int:
    """A resourceVersion as a number; "" is 0.

    Raises:
        ValueError: With upstream's words.
    """
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise ValueError(
            f"resourceVersion: Invalid value: {quote(text)}: strconv.ParseUint: parsing {quote(text)}: invalid syntax"
        )
    if int(text) >= 2**64:
        raise ValueError(
            f"resourceVersion: Invalid value: {quote(text)}: strconv.ParseUint: parsing {quote(text)}: "
            "value out of range"
        )
    return int(text)


def encode_token(revision: int, start: str) -> str:
    """A continue token: where to go on, and in which state."""
    data = msgspec.json.encode(_Token(_TOKEN_VERSION, revision, start))
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_token(token: str) -> tuple[int, str]:
    """The state and the place of a continue token.

    Raises:
        BadRequest: It is none of ours.
    """
    trouble = "continue key is not valid"
    try:
        data = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise bad_request(f"invalid continue token: {trouble}: illegal base64 data at input byte 0") from None
    try:
        found = msgspec.json.decode(data, type=_Token)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise bad_request(f"invalid continue token: {trouble}: {_json_trouble(data)}") from None
    if found.v != _TOKEN_VERSION:
        trouble += f": server does not recognize this encoded version {found.v}"
    elif found.rv == 0:
        trouble += f": incorrect encoded start resourceVersion (version {_TOKEN_VERSION})"
    elif not found.start:
        trouble += f": encoded start key empty (version {_TOKEN_VERSION})"
    elif any(part in ("", ".", "..") for part in found.start.lstrip("/").split("/")):
        trouble += f": {found.start}"
    else:
        return found.rv, found.start.lstrip("/")
    raise bad_request(f"invalid continue token: {trouble}")


def _json_trouble(data: bytes) -> str:
    if not data:
        return "unexpected end of JSON input"
    return f"invalid character '{quote(chr(data[0]))[1:-1]}' looking for beginning of value"


def list_page(store: Store, resource: GroupResource, namespace: str, options: ListOptions) -> Page:
    """One page of a list.

    Raises:
        FutureRevision: The version asked for has not been reached.
        Expired: It is forgotten.
        BadRequest: A version or token cannot be read.
    """
    matcher = Matcher(namespace, options.labels, options.fields)
    prefix = namespace + "/" if namespace else ""
    if options.continue_token:
        at, start = _continued(store, resource, prefix, options)
    else:
        at, start = _exact_revision(store, resource, options), ""
    revision = store.visible if at is None else at
    page: list[Record] = []
    limit, more, remaining = max(options.limit, 0), "", 0
    for record in store.list(resource, namespace, at=at, after=start):
        if limit and len(page) == limit:
            remaining += 1
            if not more and not matcher.selective:
                more = page[-1].key
            if matcher.selective and (more or matcher.matches(record)):
                more = page[-1].key
                break
        elif matcher.everything or matcher.matches(record):
            page.append(record)
    metadata: Raw = {"resourceVersion": str(revision)}
    if more:
        metadata["continue"] = encode_token(revision, more.removeprefix(prefix) + "\0")
        if not matcher.selective:
            metadata["remainingItemCount"] = remaining
    return Page(page, metadata)


def _continued(store: Store, resource: GroupResource, prefix: str, options: ListOptions) -> tuple[int | None, str]:
    revision, start = decode_token(options.continue_token)
    if options.resource_version not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")
    if revision < 0:
        return None, prefix + start
    verdict = store.when(resource, revision)
    if verdict == "expired":
        raise continue_expired(encode_token(-1, start))
    if verdict == "future":
        raise FutureRevision(revision)
    return revision, prefix + start


def _exact_revision(store: Store, resource: GroupResource, options: ListOptions) -> int | None:
    try:
        revision = parse_revision(options.resource_version)
    except ValueError as error:
        raise bad_request(f"invalid resource version: {error}") from error
    if revision > store.visible:
        raise FutureRevision(revision)
    exact = options.match == "Exact" or (not options.match and options.limit > 0 and revision > 0)
    if not exact:
        return None
    if store.when(resource, revision) == "expired":
        raise list_expired()
    return revision


def check_reached(store: Store, text: str) -> None:
    """See to it that the current state is not older than a resourceVersion.

    Raises:
        FutureRevision: It is older.
        ApiError: It is no number (500, as upstream answers here).
    """
    try:
        revision = parse_revision(text)
    except ValueError as error:
        raise plain_error(str(error)) from error
    if revision > store.visible:
        raise FutureRevision(revision)
