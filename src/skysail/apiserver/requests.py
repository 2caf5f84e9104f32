"""What a request says beside its path: query parameters, and which representation its Accept header asks for.

Numbers and booleans are read as the Go server reads them: any value but `0` and `false` is true, `True` included.

Source: apimachinery/pkg/apis/meta/{internalversion,v1}/validation, apiserver/pkg/endpoints/handlers/negotiation, v1.36.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from skysail.api.fields import FieldSelector
from skysail.api.labels import Selector
from skysail.apiserver.contract import FieldError, forbidden, invalid, not_supported, required, too_long
from skysail.apiserver.status import bad_request, invalid_object, not_acceptable

META_GROUP = "meta.k8s.io"
FIELD_MANAGER_LIMIT = 128
_FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_PROPAGATIONS = ("Foreground", "Background", "Orphan")
_HUMANS = ("curl", "Wget", "Mozilla/5.0")
_INTEGER = re.compile(r"[+-]?\d+")


class Query:
    """The decoded query of a request; a name may repeat, the first value counts where one is wanted."""

    __slots__ = ("_values",)

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in pairs:
            self._values.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def text(self, name: str) -> str:
        """The first value, or ""."""
        values = self._values.get(name)
        return values[0] if values else ""

    def all(self, name: str) -> Sequence[str]:
        """Every value."""
        return self._values.get(name, ())

    def flag(self, name: str) -> bool:
        """A boolean; absent is False, present without a value is True."""
        values = self._values.get(name)
        return values is not None and values[0].lower() not in ("0", "false")

    def integer(self, name: str) -> int | None:
        """A 64-bit number, or None when absent.

        Raises:
            BadRequest: It is no number.
        """
        values = self._values.get(name)
        if values is None:
            return None
        if not _INTEGER.fullmatch(values[0]):
            raise bad_request(f'strconv.ParseInt: parsing "{values[0]}": invalid syntax')
        number = int(values[0])
        if not -(2**63) <= number < 2**63:
            raise bad_request(f'strconv.ParseInt: parsing "{values[0]}": value out of range')
        return number


@dataclass(slots=True)
class ListOptions:
    """Parameters of list, watch and deletecollection.

    Attributes:
        send_initial_events: None when the request did not say.
        timeout_seconds: None when the request did not say.
    """

    labels: Selector
    fields: FieldSelector
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    watch: bool = False
    bookmarks: bool = False
    send_initial_events: bool | None = None
    timeout_seconds: int | None = None


def list_options(query: Query, *, watch: bool) -> ListOptions:
    """Read and check the parameters of a list or watch.

    Raises:
        BadRequest: A selector or a number cannot be read.
        Invalid: Parameters that do not go together.
    """
    try:
        labels = Selector.parse(query.text("labelSelector"))
        fields = FieldSelector.parse(query.text("fieldSelector"))
    except ValueError as error:
        raise bad_request(str(error)) from error
    options = ListOptions(
        labels=labels,
        fields=fields,
        resource_version=query.text("resourceVersion"),
        match=query.text("resourceVersionMatch"),
        limit=query.integer("limit") or 0,
        continue_token=query.text("continue"),
        watch=watch,
        bookmarks=query.flag("allowWatchBookmarks"),
        send_initial_events=query.flag("sendInitialEvents") if "sendInitialEvents" in query else None,
        timeout_seconds=query.integer("timeoutSeconds"),
    )
    if watch and options.send_initial_events is None and not options.match and options.resource_version in ("", "0"):
        options.send_initial_events, options.match = True, "NotOlderThan"
    errors = _watch_errors(options) if watch else _list_errors(options)
    if errors:
        raise invalid_object(META_GROUP, "ListOptions", "", errors)
    return options


def _list_errors(options: ListOptions) -> list[FieldError]:
    field, match, errors = "resourceVersionMatch", options.match, []
    if match:
        if not options.resource_version:
            errors.append(forbidden(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.continue_token:
            errors.append(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(not_supported(field, match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and options.resource_version == "0":
            errors.append(forbidden(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial_events is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:
    field, match, errors = "resourceVersionMatch", options.match, []
    if options.send_initial_events is not None and match != "NotOlderThan":
        errors.append(forbidden(field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match:
        if options.send_initial_events is None:
            errors.append(
                forbidden(field, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
            )
        if match != "NotOlderThan":
            errors.append(not_supported(field, match, ("NotOlderThan",)))
        if options.continue_token:
            errors.append(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
    return errors


@dataclass(slots=True)
class WriteOptions:
    """Parameters of create, update and patch."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = ""
    force: bool = False


def write_options(query: Query, kind: str, *, apply: bool = False) -> WriteOptions:
    """Read and check the parameters of a write.

    Args:
        query: Of the request.
        kind: CreateOptions, UpdateOptions or PatchOptions.
        apply: The patch is a server-side apply.

    Raises:
        Invalid: A value that is not allowed.
    """
    manager, dry_run = query.text("fieldManager"), query.all("dryRun")
    errors: list[FieldError] = []
    if kind == "PatchOptions":
        if apply and not manager:
            errors.append(required("fieldManager", "is required for apply patch"))
        if not apply and "force" in query:
            errors.append(forbidden("force", "may not be specified for non-apply patch"))
    errors += _manager_errors(manager) + _dry_run_errors(dry_run)
    validation = query.text("fieldValidation")
    if validation not in _FIELD_VALIDATIONS:
        errors.append(not_supported("fieldValidation", validation, _FIELD_VALIDATIONS))
    if errors:
        raise invalid_object(META_GROUP, kind, "", errors)
    return WriteOptions(
        dry_run=bool(dry_run), field_manager=manager, field_validation=validation or "Warn", force=query.flag("force")
    )


def _manager_errors(manager: str) -> list[FieldError]:
    errors = []
    if len(manager.encode()) > FIELD_MANAGER_LIMIT:
        errors.append(too_long("fieldManager", FIELD_MANAGER_LIMIT))
    position = 0
    for char in manager:
        if not (char.isprintable() or char == " "):
            shown = f"U+{ord(char):04X}"
            errors.append(invalid("fieldManager", manager, f"invalid character {shown} (at position {position})"))
        position += len(char.encode())
    return errors


def _dry_run_errors(values: Sequence[str]) -> list[FieldError]:
    return [not_supported("dryRun", list(values), ("All",))] if any(value != "All" for value in values) else []


def delete_options_errors(propagation: str | None, orphan: bool | None, dry_run: Sequence[str]) -> list[FieldError]:
    """Why delete options cannot be taken: policies that contradict or are unknown, an unknown dry run."""
    errors = []
    if orphan is not None and propagation is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", propagation, detail))
    if propagation is not None and propagation not in _PROPAGATIONS:
        errors.append(not_supported("propagationPolicy", propagation, (*_PROPAGATIONS, "nil")))
    return errors + _dry_run_errors(dry_run)


def manager_of(field_manager: str, user_agent: str) -> str:
    """Under which name a write owns fields: the one it gave, else the user agent up to its slash."""
    if field_manager:
        return field_manager
    prefix = user_agent.split("/", 1)[0]
    return "".join(char for char in prefix if char.isprintable())[:FIELD_MANAGER_LIMIT]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The representation to answer with.

    Attributes:
        media: `json` or `yaml`.
        convert: "", Table, PartialObjectMetadata or PartialObjectMetadataList.
        version: Of the meta.k8s.io group, for `convert`.
    """

    media: str
    convert: str = ""
    version: str = "v1"


_AS_IT_IS = Accepted("json")
_OFFERED = ("json", "yaml")
_PRODUCED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "*/*", "application/*")
_CONVERSIONS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


def negotiate(headers: Mapping[str, str], *, convertible: bool = True) -> Accepted:
    """Choose the representation.

    Args:
        headers: Of the request, names in lower case.
        convertible: Whether Tables and metadata alone can be given here.

    Raises:
        NotAcceptable: Nothing in Accept can be given.

    Differs: protobuf is never chosen; every client that asks for it names JSON as well.
    """
    accept = headers.get("accept", "")
    if accept in ("", "application/json", "*/*"):
        return _AS_IT_IS
    accepted = _negotiate(accept, convertible)
    if accepted is None:
        readable = any(media_type in _PRODUCED for media_type, _ in _clauses(accept))
        raise not_acceptable(with_parameters=readable)
    return accepted


@lru_cache(maxsize=256)
def _negotiate(accept: str, convertible: bool) -> Accepted | None:
    for media_type, parameters in _clauses(accept):
        kind, _, subtype = media_type.partition("/")
        if kind not in ("application", "*"):
            continue
        for offered in _OFFERED:
            if subtype in (offered, "*") and (answer := _transform(offered, parameters, convertible)):
                return answer
    return None


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    found = []
    for clause in accept.split(","):
        media_type, *rest = (part.strip() for part in clause.split(";"))
        pairs = (part.partition("=") for part in rest)
        parameters = {name.strip(): value.strip().strip('"') for name, _, value in pairs}
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 1.0
        found.append((-quality, media_type.startswith("*"), media_type.endswith("*"), media_type.lower(), parameters))
    found.sort(key=lambda clause: clause[:3])
    return [(clause[3], clause[4]) for clause in found]


def _transform(offered: str, parameters: Mapping[str, str], convertible: bool) -> Accepted | None:
    if parameters.get("stream", "") not in ("", "watch") or parameters.get("sv"):
        return None
    if not {"as", "g", "v"} & parameters.keys():
        return Accepted(offered)
    known = parameters.get("g") == META_GROUP and parameters.get("v") in ("v1", "v1beta1")
    if not (convertible and known and parameters.get("as") in _CONVERSIONS):
        return None
    return Accepted(offered, parameters["as"], parameters["v"])


def wants_indent(query: Query, headers: Mapping[str, str]) -> bool:
    """Whether a person is reading: `pretty=true`, or a browser or curl."""
    if query.text("pretty"):
        return query.text("pretty") in ("1", "t", "T", "true", "TRUE", "True")
    return headers.get("user-agent", "").startswith(_HUMANS)
