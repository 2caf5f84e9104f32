"""Questions put as objects: may I, may they, what may I, who am I, whose token is this.

Source: pkg/registry/authorization/*/rest.go, pkg/registry/authentication/*/{rest,storage}.go, v1.36.
"""

from collections.abc import Mapping

from skysail.api.errors import BadRequest
from skysail.api.ports import User
from skysail.api.raw import Raw
from skysail.apiserver.contract import AccessQuestion, Answer, Registry, RequestContext, invalid, required
from skysail.apiserver.status import invalid_object
from skysail.apiserver.subresources.actions import PlainAction, TrackedAction
from skysail.apiserver.subresources.pod_conditions import timestamp
from skysail.apiserver.validation.field import Errors

AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
API_AUDIENCE = "https://kubernetes.default.svc"
_ONE_OF_TWO = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_BOTH = "cannot be specified in combination with resourceAttributes"


def _shown_path(attributes: Raw | None) -> Raw | None:
    if attributes is None:
        return None
    return {"Path": attributes.get("path") or "", "Verb": attributes.get("verb") or ""}


def _attributes(spec: Raw) -> Errors:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    errors: Errors = []
    if resource is not None and path is not None:
        errors.append(invalid("spec.nonResourceAttributes", _shown_path(path), _BOTH))
    if resource is None and path is None:
        errors.append(invalid("spec.resourceAttributes", None, _ONE_OF_TWO))
    return errors


def _selectors(resource: Raw | None) -> Errors:
    errors: Errors = []
    for key in ("fieldSelector", "labelSelector"):
        selector = (resource or {}).get(key)
        if selector is None:
            continue
        path = f"spec.resourceAttributes.{key}"
        raw, requirements = selector.get("rawSelector"), selector.get("requirements")
        if raw and requirements:
            errors.append(invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements"))
        if not raw and not requirements:
            detail = f"when {path} is specified, requirements or rawSelector is required"
            errors.append(required(f"{path}.requirements", detail))
    return errors


def _subject(spec: Raw) -> Errors:
    if spec.get("user") or spec.get("groups"):
        return []
    return [invalid("spec.user", "", "at least one of user or group must be specified")]


def _bare(meta: Raw, allowed: tuple[str, ...], detail: str) -> Errors:
    extra = any(value for key, value in meta.items() if key not in allowed)
    return [invalid("metadata", meta, detail)] if extra else []


def question_of(spec: Raw) -> AccessQuestion:
    """What a review asks."""
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return AccessQuestion(verb=path.get("verb") or "", path=path.get("path") or "/")
    asked: Mapping[str, str] = spec.get("resourceAttributes") or {}
    names = ("verb", "group", "resource", "subresource", "name", "namespace")
    return AccessQuestion(**{name: asked.get(name) or "" for name in names})


def _verdict(user: User, spec: Raw, ctx: RequestContext) -> Raw:
    question = question_of(spec)
    if ctx.access is None or not ctx.access.allows(user, question):
        return {"allowed": False}
    reason = ctx.access.reason(user, question)
    return {"allowed": True, "reason": reason} if reason else {"allowed": True}


def _spec(body: Raw) -> Raw:
    spec: Raw = body.get("spec") or {}
    body["spec"] = spec
    return spec


class SelfAccessReview(TrackedAction):
    """`selfsubjectaccessreviews`: may I?"""

    body_kind = (AUTHORIZATION, "v1", "SelfSubjectAccessReview")

    def create(self, body: Raw, registry: Registry, ctx: RequestContext) -> Answer:
        """Answer for the user who asks.

        Raises:
            Invalid: The question is not one.
        """
        spec = _spec(body)
        errors = _attributes(spec) + _selectors(spec.get("resourceAttributes"))
        errors += _bare(body["metadata"], ("managedFields",), "must be empty")
        if errors:
            raise invalid_object(AUTHORIZATION, "", "", errors)
        return Answer(201, {**body, "status": _verdict(ctx.user, spec, ctx)})


class SubjectAccessReview(TrackedAction):
    """`subjectaccessreviews` and, for one namespace, `localsubjectaccessreviews`: may they?"""

    def __init__(self, *, local: bool = False) -> None:
        self.body_kind = (AUTHORIZATION, "v1", "LocalSubjectAccessReview" if local else "SubjectAccessReview")
        self._local = local

    def create(self, body: Raw, registry: Registry, ctx: RequestContext) -> Answer:
        """Answer for the user the body names.

        Raises:
            BadRequest: The body speaks of another namespace than the URL.
            Invalid: The question is not one.
        """
        spec = _spec(body)
        errors = _attributes(spec) + _subject(spec) + _selectors(spec.get("resourceAttributes"))
        errors += self._place(body["metadata"], spec)
        if errors:
            raise invalid_object(AUTHORIZATION, "", "", errors)
        if self._local and ctx.namespace != (body["metadata"].get("namespace") or ""):
            raise BadRequest(f"spec.resourceAttributes.namespace must match namespace: {ctx.namespace}")
        extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
        user = User(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), extra)
        return Answer(201, {**body, "status": _verdict(user, spec, ctx)})

    def _place(self, meta: Raw, spec: Raw) -> Errors:
        if not self._local:
            return _bare(meta, ("managedFields",), "must be empty")
        errors = _bare(meta, ("managedFields", "namespace"), "must be empty except for namespace")
        resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if resource is not None and (resource.get("namespace") or "") != (meta.get("namespace") or ""):
            field = "spec.resourceAttributes.namespace"
            errors.append(invalid(field, resource.get("namespace") or "", "must match metadata.namespace"))
        if path is not None:
            detail = "disallowed on this kind of request"
            errors.append(invalid("spec.nonResourceAttributes", _shown_path(path), detail))
        return errors


class SelfRulesReview(PlainAction):
    """`selfsubjectrulesreviews`: what may I do here?"""

    body_kind = (AUTHORIZATION, "v1", "SelfSubjectRulesReview")

    def create(self, body: Raw, registry: Registry, ctx: RequestContext) -> Answer:
        """List the rules that hold for the user who asks.

        Raises:
            BadRequest: No namespace was named.
        """
        namespace = (body.get("spec") or {}).get("namespace")
        if not namespace:
            raise BadRequest("no namespace on request")
        rules = ctx.access.rules(ctx.user, namespace) if ctx.access is not None else ()
        resource_keys, path_keys = ("verbs", "apiGroups", "resources", "resourceNames"), ("verbs", "nonResourceURLs")
        status: Raw = {
            "resourceRules": [_only(rule, resource_keys) for rule in rules if rule.get("resources")],
            "nonResourceRules": [_only(rule, path_keys) for rule in rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }
        kind = {"kind": "SelfSubjectRulesReview", "apiVersion": f"{AUTHORIZATION}/v1"}
        return Answer(201, {**kind, "metadata": {}, "spec": {}, "status": status})


def _only(rule: Raw, keys: tuple[str, ...]) -> Raw:
    return {key: rule[key] for key in keys if rule.get(key)}


def _user_info(user: User) -> Raw:
    info: Raw = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info


class SelfReview(PlainAction):
    """`selfsubjectreviews`: who am I?"""

    body_kind = (AUTHENTICATION, "v1", "SelfSubjectReview")

    def create(self, body: Raw, registry: Registry, ctx: RequestContext) -> Answer:
        """Name the user who asks, after impersonation."""
        shown: Raw = {
            "kind": "SelfSubjectReview",
            "apiVersion": f"{AUTHENTICATION}/v1",
            "metadata": {"creationTimestamp": timestamp(ctx.now)},
            "status": {"userInfo": _user_info(ctx.user)},
        }
        return Answer(201, shown)


class TokenReview(TrackedAction):
    """`tokenreviews`: whose token is this?"""

    body_kind = (AUTHENTICATION, "v1", "TokenReview")

    def create(self, body: Raw, registry: Registry, ctx: RequestContext) -> Answer:
        """Name the user of a token.

        Raises:
            BadRequest: There is no token in the body.
        """
        spec = _spec(body)
        token, wanted = spec.get("token"), spec.get("audiences") or (API_AUDIENCE,)
        if not token:
            raise BadRequest("token is required for TokenReview in authentication")
        user = ctx.access.user_of(token) if ctx.access is not None and API_AUDIENCE in wanted else None
        if user is None:
            status: Raw = {"user": {}, "error": "invalid bearer token"}
        else:
            status = {"authenticated": True, "user": _user_info(user), "audiences": [API_AUDIENCE]}
        return Answer(201, {**body, "status": status})
