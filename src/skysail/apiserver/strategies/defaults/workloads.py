"""Deployments and their kin, Jobs, CronJobs.

Source: pkg/apis/apps/v1/defaults.go, pkg/apis/batch/v1/defaults.go, pkg/apis/core/v1/defaults.go, v1.36.
"""

from skysail.api.raw import Raw
from skysail.apiserver.strategies.defaults.pods import pod_template
from skysail.apiserver.strategies.defaults.volumes import claim_spec

_MAX_INT32 = 2**31 - 1
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _spec(obj: Raw) -> Raw:
    spec: Raw | None = obj.get("spec")
    if spec is None:
        spec = obj["spec"] = {}
    return spec


def _absent(spec: Raw, key: str, value: object) -> None:
    if spec.get(key) is None:
        spec[key] = value


def deployment(obj: Raw) -> None:
    """Defaults of a Deployment."""
    spec = _spec(obj)
    _absent(spec, "replicas", 1)
    _absent(spec, "strategy", {})
    strategy = spec["strategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        _absent(strategy, "rollingUpdate", {})
        _absent(strategy["rollingUpdate"], "maxUnavailable", "25%")
        _absent(strategy["rollingUpdate"], "maxSurge", "25%")
    _absent(spec, "revisionHistoryLimit", 10)
    _absent(spec, "progressDeadlineSeconds", 600)
    _absent(spec, "selector", None)
    pod_template(spec)
    _absent(obj, "status", {})


def replica_set(obj: Raw) -> None:
    """Defaults of a ReplicaSet."""
    spec = _spec(obj)
    _absent(spec, "replicas", 1)
    _absent(spec, "selector", None)
    if spec.get("template") is None:
        spec["template"] = {}
    pod_template(spec)
    _absent(obj, "status", {})
    _absent(obj["status"], "replicas", 0)


def stateful_set(obj: Raw) -> None:
    """Defaults of a StatefulSet."""
    spec = _spec(obj)
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    _absent(spec, "updateStrategy", {})
    strategy = spec["updateStrategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        _absent(strategy, "rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        _absent(strategy["rollingUpdate"], "partition", 0)
    _absent(spec, "persistentVolumeClaimRetentionPolicy", {})
    policy = spec["persistentVolumeClaimRetentionPolicy"]
    for key in ("whenDeleted", "whenScaled"):
        if not policy.get(key):
            policy[key] = "Retain"
    _absent(spec, "replicas", 1)
    _absent(spec, "revisionHistoryLimit", 10)
    _absent(spec, "serviceName", "")
    _absent(spec, "selector", None)
    pod_template(spec)
    for claim in spec.get("volumeClaimTemplates") or ():
        _claim_template(claim)
    _absent(obj, "status", {})
    _absent(obj["status"], "replicas", 0)
    _absent(obj["status"], "availableReplicas", 0)


def _claim_template(claim: Raw) -> None:
    """A claim inside of a StatefulSet is a whole object, kind and all."""
    claim.setdefault("kind", "PersistentVolumeClaim")
    claim.setdefault("apiVersion", "v1")
    _absent(claim, "metadata", {})
    claim_spec(_spec(claim))
    _absent(claim, "status", {})
    if not claim["status"].get("phase"):
        claim["status"]["phase"] = "Pending"


def daemon_set(obj: Raw) -> None:
    """Defaults of a DaemonSet; the generation of its template is always shown."""
    annotations = obj["metadata"].get("annotations") or {}
    if _TEMPLATE_GENERATION not in annotations:
        obj["metadata"]["annotations"] = {**annotations, _TEMPLATE_GENERATION: "0"}
    spec = _spec(obj)
    _absent(spec, "updateStrategy", {})
    strategy = spec["updateStrategy"]
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        _absent(strategy, "rollingUpdate", {})
        _absent(strategy["rollingUpdate"], "maxUnavailable", 1)
        _absent(strategy["rollingUpdate"], "maxSurge", 0)
    _absent(spec, "revisionHistoryLimit", 10)
    _absent(spec, "selector", None)
    pod_template(spec)
    _absent(obj, "status", {})
    for key in ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"):
        _absent(obj["status"], key, 0)


def replication_controller(obj: Raw) -> None:
    """Defaults of a ReplicationController: its labels and selector come from the template."""
    spec = _spec(obj)
    template = spec.get("template")
    labels = ((template or {}).get("metadata") or {}).get("labels")
    if labels:
        if not spec.get("selector"):
            spec["selector"] = dict(labels)
        metadata = obj.setdefault("metadata", {})
        if not metadata.get("labels"):
            metadata["labels"] = dict(labels)
    _absent(spec, "replicas", 1)
    if template is not None:
        pod_template(spec)
    _absent(obj, "status", {})
    _absent(obj["status"], "replicas", 0)


def job(obj: Raw) -> None:
    """Defaults of a Job."""
    spec = _spec(obj)
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    metadata = obj.setdefault("metadata", {})
    if labels and not metadata.get("labels"):
        metadata["labels"] = dict(labels)
    job_spec(spec, whole=True)
    _absent(obj, "status", {})


def job_spec(spec: Raw, *, whole: bool) -> None:
    """Defaults of a Job's spec; `whole` False inside of a CronJob, which leaves the counts alone."""
    if whole:
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        _absent(spec, "parallelism", 1)
        _absent(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _MAX_INT32)
        _absent(spec, "completionMode", "NonIndexed")
        _absent(spec, "suspend", False)
        policy = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
        _absent(spec, "podReplacementPolicy", policy)
        _absent(spec, "manualSelector", False)
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            if not pattern.get("status"):
                pattern["status"] = "True"
    pod_template(spec)


def cron_job(obj: Raw) -> None:
    """Defaults of a CronJob."""
    spec = _spec(obj)
    if not spec.get("concurrencyPolicy"):
        spec["concurrencyPolicy"] = "Allow"
    _absent(spec, "suspend", False)
    _absent(spec, "successfulJobsHistoryLimit", 3)
    _absent(spec, "failedJobsHistoryLimit", 1)
    _absent(spec, "jobTemplate", {})
    template = spec["jobTemplate"]
    _absent(template, "metadata", {})
    job_spec(_spec(template), whole=False)
    _absent(obj, "status", {})


def pod_template_object(obj: Raw) -> None:
    """Defaults of the rarely seen kind PodTemplate."""
    pod_template(obj)


def controller_revision(obj: Raw) -> None:
    """A revision number is always shown."""
    _absent(obj, "revision", 0)
