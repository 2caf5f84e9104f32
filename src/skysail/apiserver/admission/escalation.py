"""Nobody grants with RBAC what they may not do themselves, unless they may `escalate` or `bind`.

Source: pkg/registry/rbac/*/policybased/storage.go, k8s.io/component-helpers/auth/rbac/validation, v1.36.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product

from skysail.api.raw import Raw
from skysail.apiserver.admission.attributes import Attributes
from skysail.apiserver.contract import AccessQuestion, GroupResource, quote
from skysail.apiserver.status import not_found
from skysail.apiserver.validation.field import same

_GROUP = "rbac.authorization.k8s.io"
_MASTERS = "system:masters"
_PLURALS = {"Role": "roles", "ClusterRole": "clusterroles"}
_EVERYTHING: Sequence[Raw] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_WORDS = (
    ("APIGroups", "apiGroups"), ("Resources", "resources"), ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"), ("Verbs", "verbs"),
)  # fmt: skip


def check_role(a: Attributes) -> None:
    """Refuse a role with rules its author does not hold."""
    if _trusted(a) or _may(a, "escalate", a.resource.resource, a.ctx.name):
        return
    _confirm(a, a.obj.get("rules") or ())
    aggregates = a.obj.get("aggregationRule") is not None and (a.old or {}).get("aggregationRule") is None
    if aggregates and _missing(_held(a), _EVERYTHING):
        raise a.refuse("must have cluster-admin privileges to use the aggregationRule")


def check_binding(a: Attributes) -> None:
    """Refuse a binding to a role with rules its author does not hold.

    Raises:
        NotFound: There is no such role.
    """
    reference = a.obj.get("roleRef") or {}
    plural = _PLURALS.get(reference.get("kind") or "")
    name = reference.get("name") or ""
    if _trusted(a) or plural is None or _may(a, "bind", plural, name):
        return
    resource = GroupResource(_GROUP, plural)
    role = a.ctx.reader.get(resource, a.namespace if plural == "roles" else "", name)
    if role is None:
        raise not_found(resource, name)
    _confirm(a, role.get("rules") or ())


def _trusted(a: Attributes) -> bool:
    """Whether there is nothing to ask: no RBAC, an all-powerful user, or only bookkeeping changed."""
    ctx = a.ctx
    if ctx.access is None or ctx.options.get("authorization-mode") != "RBAC" or _MASTERS in ctx.user.groups:
        return True
    return a.old is not None and same(_content(a.obj), _content(a.old))


def _content(obj: Raw) -> Raw:
    unimportant = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")
    meta = {key: value for key, value in obj["metadata"].items() if key not in unimportant}
    return {**obj, "metadata": meta}


def _may(a: Attributes, verb: str, resource: str, name: str) -> bool:
    question = AccessQuestion(verb=verb, group=_GROUP, resource=resource, name=name, namespace=a.namespace)
    return a.ctx.access is not None and a.ctx.access.allows(a.ctx.user, question)


def _held(a: Attributes) -> Sequence[Raw]:
    return a.ctx.access.rules(a.ctx.user, a.namespace) if a.ctx.access is not None else ()


def _confirm(a: Attributes, rules: Sequence[Raw]) -> None:
    missing = _missing(_held(a), rules)
    if missing:
        user = a.ctx.user
        described = "\n".join(sorted({_described(rule) for rule in _compact(missing)}))
        raise a.refuse(
            f"user {quote(user.name)} (groups={_quoted(user.groups)}) is attempting to grant RBAC permissions not "
            f"currently held:\n{described}"
        )


def _missing(held: Sequence[Raw], rules: Sequence[Raw]) -> list[Raw]:
    """The single permissions in the rules that nothing held covers."""
    singles = [single for rule in rules for single in _singles(rule)]
    return [single for single in singles if not any(_covers(rule, single) for rule in held)]


def _singles(rule: Raw) -> Iterator[Raw]:
    names = [[name] for name in rule.get("resourceNames") or ()] or [[]]
    verbs: Sequence[str] = rule.get("verbs") or ()
    for group, resource, verb, name in product(rule.get("apiGroups") or (), rule.get("resources") or (), verbs, names):
        yield {"apiGroups": [group], "resources": [resource], "verbs": [verb], "resourceNames": name}
    for url, verb in product(rule.get("nonResourceURLs") or (), verbs):
        yield {"nonResourceURLs": [url], "verbs": [verb]}


def _covers(rule: Raw, single: Raw) -> bool:
    def has(key: str, wanted: Sequence[str]) -> bool:
        known: Collection[str] = rule.get(key) or ()
        return "*" in known or all(value in known for value in wanted)

    names = rule.get("resourceNames") or ()
    named = not names or (bool(single.get("resourceNames")) and all(name in names for name in single["resourceNames"]))
    return (
        has("verbs", single["verbs"])
        and has("apiGroups", single.get("apiGroups") or ())
        and all(_covers_resource(rule.get("resources") or (), wanted) for wanted in single.get("resources") or ())
        and all(_covers_url(rule.get("nonResourceURLs") or (), url) for url in single.get("nonResourceURLs") or ())
        and named
    )


def _covers_resource(known: Collection[str], wanted: str) -> bool:
    _, slash, subresource = wanted.partition("/")
    return "*" in known or wanted in known or bool(slash and f"*/{subresource}" in known)


def _covers_url(known: Collection[str], wanted: str) -> bool:
    return any(url == wanted or (url.endswith("*") and wanted.startswith(url.rstrip("*"))) for url in known)


def _compact(singles: Sequence[Raw]) -> list[Raw]:
    """The verbs on one resource together."""
    found: dict[tuple[str, ...], Raw] = {}
    others: list[Raw] = []
    for single in singles:
        if single.get("nonResourceURLs"):
            others.append(single)
            continue
        key = (single["apiGroups"][0], single["resources"][0], *single["resourceNames"])
        known = found.setdefault(key, {**single, "verbs": []})
        known["verbs"].extend(single["verbs"])
    return [*others, *found.values()]


def _described(rule: Mapping[str, Sequence[str]]) -> str:
    return "{" + ", ".join(f"{word}:{_quoted(rule[key])}" for word, key in _WORDS if rule.get(key)) + "}"


def _quoted(values: Sequence[str]) -> str:
    return "[" + " ".join(quote(value) for value in values) + "]"
