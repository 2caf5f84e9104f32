"""ServiceAccount: every pod runs as an account, and finds its token in a volume.

Off unless `ctx.options["enable-service-account-admission"]` is "true".

Source: plugin/pkg/admission/serviceaccount, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.admission.attributes import Attributes
from skysail.apiserver.contract import GroupResource

SERVICE_ACCOUNTS = GroupResource("", "serviceaccounts")
SWITCH = "enable-service-account-admission"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_MIRROR = "kubernetes.io/config.mirror"
_ENFORCE = "kubernetes.io/enforce-mountable-secrets"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_TOKEN_SECONDS = 3607


def inject(a: Attributes) -> None:
    """Name the account, mount its token, take over its pull secrets."""
    if a.ctx.options.get(SWITCH) != "true" or a.operation != "CREATE" or a.ctx.subresource:
        return
    spec = a.obj.setdefault("spec", {})
    if _MIRROR in (a.obj["metadata"].get("annotations") or {}):
        _check_mirror(a, spec)
        return
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = a.ctx.reader.get(SERVICE_ACCOUNTS, a.namespace, name)
    if account is None:
        raise a.refuse(f'error looking up service account {a.namespace}/{name}: serviceaccount "{name}" not found')
    if _automounts(account, spec):
        _mount_token(a, spec)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = [{"name": item.get("name") or ""} for item in account["imagePullSecrets"]]
    if (account["metadata"].get("annotations") or {}).get(_ENFORCE) in ("1", "t", "T", "true", "TRUE", "True"):
        _limit_secrets(a, account, spec)


def _check_mirror(a: Attributes, spec: Raw) -> None:
    if spec.get("serviceAccountName"):
        raise a.refuse("a mirror pod may not reference service accounts")
    for volume in spec.get("volumes") or ():
        if volume.get("secret"):
            raise a.refuse("a mirror pod may not reference secrets")
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken"):
                raise a.refuse("a mirror pod may not use ServiceAccountToken volume projections")


def _automounts(account: Raw, spec: Raw) -> bool:
    for holder in (spec, account):
        wish = holder.get("automountServiceAccountToken")
        if wish is not None:
            return bool(wish)
    return True


def _mount_token(a: Attributes, spec: Raw) -> None:
    volumes = spec.get("volumes") or []
    existing = next((v["name"] for v in volumes if str(v.get("name") or "").startswith("kube-api-access-")), "")
    name = existing or "kube-api-access-" + "".join(a.ctx.rng.choice(_ALPHABET) for _ in range(5))
    used = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.get("volumeMounts") or []
        if not any(mount.get("mountPath") == _MOUNT_PATH for mount in mounts):
            mount = {"name": name, "readOnly": True, "mountPath": _MOUNT_PATH}
            container["volumeMounts"] = [*mounts, mount]
            used = True
    if used and not existing:
        spec["volumes"] = [*volumes, {"name": name, "projected": token_projection()}]


def token_projection() -> Raw:
    """The volume in which a pod finds its token, the cluster's certificate and its namespace."""
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 420,
    }


def _limit_secrets(a: Attributes, account: Raw, spec: Raw) -> None:
    allowed = {item.get("name") for item in account.get("secrets") or ()}
    owner = account["metadata"]["name"]
    refusal = f"is not allowed because service account {owner} does not reference that secret"
    for volume in spec.get("volumes") or ():
        name = (volume.get("secret") or {}).get("secretName")
        if name and name not in allowed:
            raise a.refuse(f'volume with secret.secretName="{name}" {refusal}')
    for word, key in (("init container", "initContainers"), ("container", "containers")):
        for container in spec.get(key) or ():
            for variable in container.get("env") or ():
                name = ((variable.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")
                if name and name not in allowed:
                    where = f"{word} {container.get('name')} with envVar {variable.get('name')}"
                    raise a.refuse(f'{where} referencing secret.secretName="{name}" {refusal}')
            for block in container.get("envFrom") or ():
                name = (block.get("secretRef") or {}).get("name")
                if name and name not in allowed:
                    where = f"{word} {container.get('name')} with envFrom"
                    raise a.refuse(f'{where} referencing secret.secretName="{name}" {refusal}')
    pulls = {item.get("name") for item in account.get("imagePullSecrets") or ()}
    for index, item in enumerate(spec.get("imagePullSecrets") or ()):
        if item.get("name") not in pulls:
            raise a.refuse(
                f'imagePullSecrets[{index}].name="{item.get("name")}" is not allowed because service account {owner} '
                "does not reference that imagePullSecret"
            )
