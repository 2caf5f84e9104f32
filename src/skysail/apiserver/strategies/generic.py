"""The life of an object of any kind, steered by one row of rules.

Source: pkg/registry/*/strategy.go and k8s.io/apiserver/pkg/registry/rest, v1.36.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from skysail.api.raw import Raw
from skysail.apiserver.contract import DeleteOptions, FieldError, RequestContext
from skysail.apiserver.validation.field import Errors, same
from skysail.apiserver.validation.names import NameCheck, dns_subdomain, prefix_of

SPEC = ("spec",)
"""What most kinds count generations of."""
STATUS_REPLICAS: Mapping[str, tuple[str, ...]] = {"status.replicas": ("status", "replicas")}
"""The field selector of what keeps a number of pods."""


def _nothing(obj: Raw) -> None:
    """No defaults."""


def _fine(obj: Raw) -> Errors:
    return []


def _fine_update(new: Raw, old: Raw) -> Errors:
    return []


@dataclass(frozen=True, slots=True)
class Rules:
    """What tells one kind from another, as far as it fits into a row.

    Attributes:
        name_check: What names look like.
        status: `status` is written through its subresource only; a new object starts with `first_status`.
        first_status: The status of a new object, keys that are always shown.
        generation: Top-level keys whose change counts as a new generation; empty when the kind counts none.
        create_on_update: PUT of an absent object creates it.
        unconditional_update: PUT without a resourceVersion is taken.
        returns_deleted: DELETE answers with the object.
        defaults: Fills in what was left out.
        validate: Checks a new object, and the new state of a changed one.
        validate_update: Checks the change; `validate` has run by then.
        revalidate: Whether `validate` runs on an update too; False where `validate_update` does everything.
        fields: Field selector to the path of its value.
    """

    name_check: NameCheck = dns_subdomain
    status: bool = False
    first_status: Mapping[str, object] = field(default_factory=dict)
    generation: tuple[str, ...] = ()
    create_on_update: bool = False
    unconditional_update: bool = True
    returns_deleted: bool = False
    defaults: Callable[[Raw], None] = _nothing
    validate: Callable[[Raw], Errors] = _fine
    validate_update: Callable[[Raw, Raw], Errors] = _fine_update
    revalidate: bool = True
    fields: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class GenericStrategy:
    """`skysail.apiserver.contract.Strategy` for every kind whose rules fit into a row; the others derive from it."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.allow_create_on_update = rules.create_on_update
        self.allow_unconditional_update = rules.unconditional_update
        self.returns_deleted = rules.returns_deleted

    def default(self, obj: Raw) -> None:
        """Fill in what was left out."""
        self.rules.defaults(obj)

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Start with a blank status, at generation 1."""
        rules = self.rules
        if rules.status:
            obj["status"] = dict(rules.first_status)
        if rules.generation:
            obj["metadata"]["generation"] = 1
        else:
            obj["metadata"].pop("generation", None)

    def validate_create(self, obj: Raw) -> Sequence[FieldError]:
        """All broken rules of a new object."""
        return self.rules.validate(obj)

    def name_errors(self, name: str, prefix: bool) -> Sequence[str]:
        """Why a name is none."""
        check = self.rules.name_check
        return prefix_of(check, name) if prefix else check(name)

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Keep the status, count the generation."""
        if self.rules.status:
            keep(new, old, "status")
        self.count_generation(new, old)

    def count_generation(self, new: Raw, old: Raw) -> None:
        """Generation of the old object, plus one when something that counts has changed."""
        generation = old["metadata"].get("generation")
        if any(not same(new.get(key), old.get(key)) for key in self.rules.generation):
            generation = (generation or 0) + 1
        if generation:
            new["metadata"]["generation"] = generation
        else:
            new["metadata"].pop("generation", None)

    def validate_update(self, new: Raw, old: Raw) -> Sequence[FieldError]:
        """All broken rules of the new state, then of the change."""
        rules = self.rules
        return (rules.validate(new) if rules.revalidate else []) + rules.validate_update(new, old)

    def warnings(self, new: Raw, old: Raw | None, ctx: RequestContext) -> Sequence[str]:
        """Nothing to warn of."""
        return ()

    def grace_period(self, obj: Raw, options: DeleteOptions, ctx: RequestContext) -> int | None:
        """No graceful deletion."""
        return None

    def default_propagation(self, ctx: RequestContext) -> str:
        """Dependents are deleted in the background."""
        return ""

    def prepare_delete(self, obj: Raw, ctx: RequestContext) -> None:
        """Nothing to do."""

    def may_remove(self, obj: Raw) -> bool:
        """Once its finalizers are gone."""
        return True

    def selectable_fields(self, obj: Raw) -> Mapping[str, str]:
        """The values named by the row."""
        return {name: text_at(obj, path) for name, path in self.rules.fields.items()}

    def to_storage(self, obj: Raw, group: str, version: str) -> Raw:
        """Stored as it came."""
        return obj

    def from_storage(self, obj: Raw, group: str, version: str) -> Raw:
        """Shown in the version that was asked for."""
        api_version = f"{group}/{version}" if group else version
        if obj.get("apiVersion") not in (None, api_version):
            obj = {**obj, "apiVersion": api_version}
        return obj


def keep(new: Raw, old: Raw, key: str) -> None:
    """Put back what this endpoint may not change."""
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


def text_at(obj: Raw, path: tuple[str, ...]) -> str:
    """The value at a path as a field selector sees it: numbers and truth in Go's spelling, absent as ""."""
    value: object = obj
    for key in path:
        if not isinstance(value, dict):
            return ""
        value = value.get(key)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
