"""Deployments, jobs and what goes with them, in one line each.

>>> web = make_deployment("web", replicas=3, cpu="500m")
>>> web.spec.replicas, web.spec.selector.match_labels
(3, {'app': 'web'})
"""

from collections.abc import Mapping

import msgspec

from skysail.api.apps import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDeployment,
)
from skysail.api.batch import Job, JobSpec
from skysail.api.cluster import ConfigMap, Namespace, Service, ServicePort, ServiceSpec
from skysail.api.core import Pod
from skysail.api.meta import LabelSelector, ObjectMeta
from skysail.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from skysail.api.scheduling import PriorityClass
from skysail.testing.builders import make_pod


def pod_template(pod: Pod) -> msgspec.Raw:
    """The template that makes pods like this one: its labels, annotations and spec."""
    metadata = {
        key: value
        for key, value in (("labels", dict(pod.metadata.labels)), ("annotations", dict(pod.metadata.annotations)))
        if value
    }
    return msgspec.Raw(msgspec.json.encode({"metadata": metadata, "spec": pod.spec}))


def _labelled(name: str, labels: Mapping[str, str] | None, template: Pod | None, cpu: str, memory: str) -> Pod:
    """The pod to make a template of: the given one, or a plain one."""
    if template is not None:
        return template
    return make_pod(labels=dict(labels or {"app": name}), cpu=cpu, memory=memory)


def make_deployment(
    name: str = "web",
    namespace: str = "default",
    *,
    replicas: int | None = 1,
    labels: Mapping[str, str] | None = None,
    cpu: str = "",
    memory: str = "",
    template: Pod | None = None,
    strategy: str = "",
    max_surge: int | str | None = None,
    max_unavailable: int | str | None = None,
    progress_deadline_seconds: int | None = None,
    paused: bool = False,
) -> Deployment:
    """A deployment.

    Args:
        name: Its name; its pods are labelled `app=<name>` unless told otherwise.
        namespace: Where it lives.
        replicas: How many pods.
        labels: Of its pods, and what it selects by.
        cpu: Each pod's request.
        memory: Likewise.
        template: A pod to take the template from instead; its labels are selected by.
        strategy: `RollingUpdate` or `Recreate`.
        max_surge: Number or percentage.
        max_unavailable: Likewise.
        progress_deadline_seconds: When a rollout counts as stuck.
        paused: Whether rollouts are paused.
    """
    pod = _labelled(name, labels, template, cpu, memory)
    rolling = None
    if max_surge is not None or max_unavailable is not None:
        rolling = RollingUpdateDeployment(max_surge=max_surge, max_unavailable=max_unavailable)
    return Deployment(
        metadata=ObjectMeta(name=name, namespace=namespace, labels=dict(pod.metadata.labels)),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels=dict(pod.metadata.labels)),
            template=pod_template(pod),
            strategy=DeploymentStrategy(type=strategy, rolling_update=rolling),
            progress_deadline_seconds=progress_deadline_seconds,
            paused=paused,
        ),
    )


def make_replica_set(
    name: str = "web",
    namespace: str = "default",
    *,
    replicas: int | None = 1,
    labels: Mapping[str, str] | None = None,
    cpu: str = "",
    memory: str = "",
    template: Pod | None = None,
) -> ReplicaSet:
    """A replica set; arguments as for `make_deployment`."""
    pod = _labelled(name, labels, template, cpu, memory)
    return ReplicaSet(
        metadata=ObjectMeta(name=name, namespace=namespace, labels=dict(pod.metadata.labels)),
        spec=ReplicaSetSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels=dict(pod.metadata.labels)),
            template=pod_template(pod),
        ),
    )


def make_job(
    name: str = "job",
    namespace: str = "default",
    *,
    completions: int | None = 1,
    parallelism: int | None = None,
    backoff_limit: int | None = None,
    cpu: str = "",
    memory: str = "",
    template: Pod | None = None,
) -> Job:
    """A job whose pods do not restart.

    Args:
        name: Its name.
        namespace: Where it lives.
        completions: How many pods must succeed.
        parallelism: How many run at a time.
        backoff_limit: How many failures it takes.
        cpu: Each pod's request.
        memory: Likewise.
        template: A pod to take the template from instead.
    """
    pod = template or make_pod(cpu=cpu, memory=memory)
    spec = pod.spec if pod.spec.restart_policy else msgspec.structs.replace(pod.spec, restart_policy="Never")
    return Job(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=JobSpec(
            completions=completions,
            parallelism=parallelism,
            backoff_limit=backoff_limit,
            template=pod_template(msgspec.structs.replace(pod, spec=spec)),
        ),
    )


def make_namespace(name: str = "team", *, labels: Mapping[str, str] | None = None) -> Namespace:
    """A namespace."""
    return Namespace(metadata=ObjectMeta(name=name, labels=dict(labels or {})))


def make_config_map(name: str = "config", namespace: str = "default", **data: str) -> ConfigMap:
    """A config map of these entries."""
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace), data=data)


def make_service(
    name: str = "web", namespace: str = "default", *, port: int = 80, selector: Mapping[str, str] | None = None
) -> Service:
    """A service of one port, for the pods labelled `app=<name>` unless told otherwise."""
    return Service(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=ServiceSpec(selector=dict(selector or {"app": name}), ports=(ServicePort(port=port),)),
    )


def make_priority_class(name: str, value: int, *, preemption_policy: str | None = None) -> PriorityClass:
    """A priority class."""
    return PriorityClass(metadata=ObjectMeta(name=name), value=value, preemption_policy=preemption_policy)


def make_disruption_budget(
    name: str = "web",
    namespace: str = "default",
    *,
    selector: Mapping[str, str] | None = None,
    min_available: int | str | None = None,
    max_unavailable: int | str | None = None,
) -> PodDisruptionBudget:
    """A disruption budget for the pods labelled `app=<name>` unless told otherwise."""
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=PodDisruptionBudgetSpec(
            selector=LabelSelector(match_labels=dict(selector or {"app": name})),
            min_available=min_available,
            max_unavailable=max_unavailable,
        ),
    )
