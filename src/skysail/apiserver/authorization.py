"""Who may do what: everybody everything, or roles and bindings (RBAC).

RBAC reads the Role, ClusterRole and binding objects in the store; its index is made anew when one of them has changed.
The group `system:masters` may do everything.

Source: plugin/pkg/auth/authorizer/rbac, pkg/registry/rbac/validation, v1.36.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from skysail.api.errors import Forbidden, StatusDetails
from skysail.api.ports import Request, User
from skysail.api.raw import Raw
from skysail.apiserver.authentication import AUTHENTICATED
from skysail.apiserver.contract import AccessQuestion, GroupResource, quote
from skysail.apiserver.routing import Target
from skysail.apiserver.status import forbidden_error
from skysail.apiserver.store import Store

MASTERS = "system:masters"
RBAC_GROUP = "rbac.authorization.k8s.io"
_ROLES, _CLUSTER_ROLES = GroupResource(RBAC_GROUP, "roles"), GroupResource(RBAC_GROUP, "clusterroles")
_BINDINGS = GroupResource(RBAC_GROUP, "rolebindings")
_CLUSTER_BINDINGS = GroupResource(RBAC_GROUP, "clusterrolebindings")
_EVERYTHING: Sequence[Raw] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)
_decode = msgspec.json.Decoder().decode


class Authorizer(Protocol):
    """Decides who may do what."""

    def allows(self, user: User, question: AccessQuestion) -> bool:
        """Whether the user may."""
        ...

    def reason(self, user: User, question: AccessQuestion) -> str:
        """Why the user may; "" when nothing is to be said."""
        ...

    def rules(self, user: User, namespace: str) -> Sequence[Raw]:
        """The rules that hold for a user in a namespace."""
        ...


class AlwaysAllow:
    """Everybody may do everything."""

    def allows(self, user: User, question: AccessQuestion) -> bool:
        """Yes."""
        return True

    def reason(self, user: User, question: AccessQuestion) -> str:
        """No reason."""
        return ""

    def rules(self, user: User, namespace: str) -> Sequence[Raw]:
        """Everything."""
        return _EVERYTHING


@dataclass(frozen=True, slots=True)
class _Binding:
    subjects: Sequence[Raw]
    role: Raw
    namespace: str
    name: str

    def described(self, subject: Raw) -> str:
        """The binding in the words of an answer's reason."""
        kind, name = (
            ("RoleBinding", f"{self.name}/{self.namespace}") if self.namespace else ("ClusterRoleBinding", self.name)
        )
        who = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            who = f"{who}/{subject.get('namespace') or self.namespace}"
        role = f"{self.role.get('kind', '')} {quote(self.role.get('name', ''))}"
        return f"{kind} {quote(name)} of {role} to {subject.get('kind', '')} {quote(who)}"


class RoleBased:
    """RBAC over the objects of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version: tuple[int, ...] = ()
        self._roles: dict[tuple[str, str], Sequence[Raw]] = {}
        self._bindings: dict[str, list[_Binding]] = {}

    def allows(self, user: User, question: AccessQuestion) -> bool:
        """Whether any rule that holds for the user covers the question."""
        if MASTERS in user.groups:
            return True
        return bool(self._granted(user, question))

    def reason(self, user: User, question: AccessQuestion) -> str:
        """Which binding lets the user."""
        if MASTERS in user.groups:
            return ""
        binding = self._granted(user, question)
        return f"RBAC: allowed by {binding}" if binding else ""

    def _granted(self, user: User, question: AccessQuestion) -> str:
        """The binding that covers the question, described; "" when none does."""
        covers = _covers_path if question.path else _covers_resource
        for binding, subject, rules in self._held(user, question.namespace):
            if any(covers(rule, question) for rule in rules):
                return binding.described(subject)
        return ""

    def rules(self, user: User, namespace: str) -> Sequence[Raw]:
        """The rules that hold for a user in a namespace."""
        found = [rule for _, _, rules in self._held(user, namespace) for rule in rules]
        return [*_EVERYTHING, *found] if MASTERS in user.groups else found

    def _held(self, user: User, namespace: str) -> Iterator[tuple[_Binding, Raw, Sequence[Raw]]]:
        """The bindings of a user, with the subject that stands for the user and the rules of the role."""
        self._refresh()
        for place in ("", namespace) if namespace else ("",):
            for binding in self._bindings.get(place, ()):
                subject = next((each for each in binding.subjects if _is_subject(user, each, place)), None)
                if subject is not None:
                    home = place if binding.role.get("kind") == "Role" else ""
                    yield binding, subject, self._roles.get((home, binding.role.get("name", "")), ())

    def _refresh(self) -> None:
        kinds = (_ROLES, _CLUSTER_ROLES, _BINDINGS, _CLUSTER_BINDINGS)
        version = tuple(self._store.last_change(kind) for kind in kinds)
        if version == self._version:
            return
        self._version = version
        self._roles, self._bindings = {}, {}
        for kind in (_ROLES, _CLUSTER_ROLES):
            for record in self._store.list(kind):
                self._roles[record.namespace, record.name] = _decode(record.body).get("rules") or ()
        for kind in (_BINDINGS, _CLUSTER_BINDINGS):
            for record in self._store.list(kind):
                body = _decode(record.body)
                binding = _Binding(body.get("subjects") or (), body["roleRef"], record.namespace, record.name)
                self._bindings.setdefault(record.namespace, []).append(binding)


def _is_subject(user: User, subject: Raw, namespace: str) -> bool:
    kind, name = subject.get("kind"), subject.get("name", "")
    if kind == "User":
        return bool(user.name == name)
    if kind == "Group":
        return name in user.groups
    home = subject.get("namespace") or namespace
    return bool(kind == "ServiceAccount" and user.name == f"system:serviceaccount:{home}:{name}")


def _has(rule: Raw, key: str, value: str) -> bool:
    known = rule.get(key) or ()
    return "*" in known or value in known


def _covers_resource(rule: Raw, question: AccessQuestion) -> bool:
    if not (_has(rule, "verbs", question.verb) and _has(rule, "apiGroups", question.group)):
        return False
    names = rule.get("resourceNames")
    if names and question.name not in names:
        return False
    wanted = question.resource
    if question.subresource:
        wanted = f"{question.resource}/{question.subresource}"
        if f"*/{question.subresource}" in (rule.get("resources") or ()):
            return True
    return _has(rule, "resources", wanted)


def _covers_path(rule: Raw, question: AccessQuestion) -> bool:
    if not _has(rule, "verbs", question.verb):
        return False
    return any(
        url in ("*", question.path) or (url.endswith("*") and question.path.startswith(url.rstrip("*")))
        for url in rule.get("nonResourceURLs") or ()
    )


def question_of(request: Request, target: Target | None, verb: str) -> AccessQuestion:
    """What a request asks to be allowed."""
    if target is None:
        return AccessQuestion(verb=request.method.lower(), path=request.path)
    resource = target.resource
    return AccessQuestion(
        verb=verb,
        group=resource.group,
        resource=resource.resource,
        subresource=target.subresource,
        name=target.name,
        namespace=target.namespace or (target.name if resource.resource == "namespaces" else ""),
    )


def refusal(user: User, question: AccessQuestion) -> Forbidden:
    """The 403 for what a user may not do, in upstream's words."""
    if question.path:
        return Forbidden(
            f"forbidden: User {quote(user.name)} cannot {question.verb} path {quote(question.path)}",
            details=StatusDetails(),
        )
    resource = question.resource + (f"/{question.subresource}" if question.subresource else "")
    where = f"in the namespace {quote(question.namespace)}" if question.namespace else "at the cluster scope"
    why = (
        f"User {quote(user.name)} cannot {question.verb} resource {quote(resource)} "
        f"in API group {quote(question.group)} {where}"
    )
    return forbidden_error(GroupResource(question.group, question.resource), question.name, why)


def impersonate(user: User, headers: Mapping[str, str], question: AccessQuestion, authorizer: Authorizer) -> User:
    """The user a request wants to be taken for, by its `Impersonate-*` headers.

    Raises:
        Forbidden: The real user may not do that.
    """
    name = headers.get("impersonate-user", "")
    if not name:
        return user
    groups = tuple(filter(None, (part.strip() for part in headers.get("impersonate-group", "").split(","))))
    wanted = [AccessQuestion("impersonate", resource="users", name=name)]
    wanted += [AccessQuestion("impersonate", resource="groups", name=group) for group in groups]
    if not all(authorizer.allows(user, each) for each in wanted):
        verb = f"impersonate-on:user-info:{question.verb}"
        raise refusal(user, replace(question, verb=verb))
    return User(name=name, uid=headers.get("impersonate-uid", ""), groups=(*groups, AUTHENTICATED))


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """`contract.Access` of one server."""

    authorizer: Authorizer
    find_user: Callable[[str], User | None]

    def allows(self, user: User, question: AccessQuestion) -> bool:
        """Whether the user may."""
        return self.authorizer.allows(user, question)

    def reason(self, user: User, question: AccessQuestion) -> str:
        """Why the user may."""
        return self.authorizer.reason(user, question)

    def rules(self, user: User, namespace: str) -> Sequence[Raw]:
        """The rules that hold for a user in a namespace."""
        return self.authorizer.rules(user, namespace)

    def user_of(self, token: str) -> User | None:
        """The user of a bearer token."""
        return self.find_user(token)
