"""`serviceaccounts/NAME/token`: a token for a ServiceAccount.

The token has the form and the claims of kube-apiserver's, under a signature of random bytes: this server knows callers
by its own table of tokens and has no key to sign with.

Source: pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount/claims.go, v1.36.
"""

import base64
from datetime import timedelta
from random import Random

import msgspec

from skysail.api.errors import BadRequest
from skysail.api.raw import Raw
from skysail.apiserver.contract import Answer, GroupResource, Registry, RequestContext, invalid
from skysail.apiserver.lifecycle import make_uid
from skysail.apiserver.status import conflict, invalid_object, not_found
from skysail.apiserver.subresources.actions import TrackedAction
from skysail.apiserver.subresources.pod_conditions import timestamp
from skysail.apiserver.subresources.reviews import API_AUDIENCE, AUTHENTICATION
from skysail.apiserver.validation.field import Errors

ACCOUNTS = GroupResource("", "serviceaccounts")
_BOUND_TO = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}
_HOUR, _SHORTEST, _LONGEST = 3600, 600, 2**32


class TokenAction(TrackedAction):
    """Makes a token out of a TokenRequest."""

    body_kind = (AUTHENTICATION, "v1", "TokenRequest")

    def default(self, body: Raw) -> None:
        """Tokens last an hour."""
        spec = body.setdefault("spec", {})
        if spec.get("expirationSeconds") is None:
            spec["expirationSeconds"] = _HOUR

    def create(self, body: Raw, registry: Registry, ctx: RequestContext) -> Answer:
        """Answer the request with a token in it.

        Raises:
            BadRequest: It cannot be bound to what the request names.
            Conflict: The request was made for another object of that name.
            Invalid: URL and body disagree, or the token would last too short or too long.
            NotFound: No such ServiceAccount.
        """
        meta, spec = body["metadata"], body["spec"]
        self._check_url(meta, ctx)
        account = registry.get(ACCOUNTS, ctx.namespace, ctx.name)
        if account is None:
            raise not_found(ACCOUNTS, ctx.name)
        uid = account["metadata"]["uid"]
        if meta.get("uid") and meta["uid"] != uid:
            why = f"the UID in the token request ({meta['uid']}) does not match the UID of the service account ({uid})"
            raise conflict(GroupResource(AUTHENTICATION, "TokenRequest"), ctx.name, why)
        meta.update(name=ctx.name, namespace=ctx.namespace, uid=uid, creationTimestamp=timestamp(ctx.now))
        spec["audiences"] = spec.get("audiences") or [API_AUDIENCE]
        reference = spec.setdefault("boundObjectRef", None)
        errors = _lifetime(spec["expirationSeconds"])
        if errors:
            raise invalid_object(AUTHENTICATION, "TokenRequest", "", errors)
        bound = _bound_object(reference, registry, ctx) if reference else None
        expires = ctx.now + timedelta(seconds=spec["expirationSeconds"])
        claims = {
            "aud": spec["audiences"],
            "exp": int(expires.timestamp()),
            "iat": int(ctx.now.timestamp()),
            "iss": API_AUDIENCE,
            "jti": make_uid(ctx.rng),
            "kubernetes.io": _private_claims(account, reference, bound),
            "nbf": int(ctx.now.timestamp()),
            "sub": f"system:serviceaccount:{ctx.namespace}:{ctx.name}",
        }
        status = {"token": _token(claims, ctx.rng), "expirationTimestamp": timestamp(expires)}
        return Answer(201, {**body, "status": status})

    @staticmethod
    def _check_url(meta: Raw, ctx: RequestContext) -> None:
        for key, expected, words in (
            ("name", ctx.name, "must match the service account name if specified"),
            ("namespace", ctx.namespace, "must match the service account namespace if specified"),
        ):
            if meta.get(key) and meta[key] != expected:
                error = invalid(f"metadata.{key}", meta[key], words)
                raise invalid_object(AUTHENTICATION, "TokenRequest", ctx.name, [error])


def _lifetime(seconds: int) -> Errors:
    path = "spec.expirationSeconds"
    if seconds < _SHORTEST:
        return [invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _LONGEST:
        return [invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def _bound_object(reference: Raw, registry: Registry, ctx: RequestContext) -> Raw:
    kind, name = reference.get("kind") or "", reference.get("name") or ""
    group, _, version = (reference.get("apiVersion") or "").rpartition("/")
    if group or kind not in _BOUND_TO:
        raise BadRequest(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    resource = GroupResource("", _BOUND_TO[kind])
    found = registry.get(resource, "" if kind == "Node" else ctx.namespace, name)
    if found is None:
        raise not_found(resource, name)
    if kind == "Pod" and found["spec"].get("serviceAccountName") != ctx.name:
        raise BadRequest(
            f'cannot bind token for serviceaccount "{ctx.name}" to pod running with different serviceaccount name.'
        )
    uid = reference.get("uid")
    if uid and uid != found["metadata"]["uid"]:
        why = (
            f"the UID in the bound object reference ({uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise conflict(GroupResource("", kind), name, why)
    return found


def _private_claims(account: Raw, reference: Raw | None, bound: Raw | None) -> Raw:
    meta = account["metadata"]
    claims: Raw = {
        "namespace": meta["namespace"],
        "serviceaccount": {"name": meta["name"], "uid": meta["uid"]},
    }
    if reference is not None and bound is not None:
        named = {"name": bound["metadata"]["name"], "uid": bound["metadata"]["uid"]}
        claims[reference["kind"].lower()] = named
    return claims


def _token(claims: Raw, rng: Random) -> str:
    parts = (msgspec.json.encode({"alg": "RS256", "kid": ""}), msgspec.json.encode(claims), rng.randbytes(256))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)
