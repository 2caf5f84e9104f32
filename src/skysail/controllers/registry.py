"""The table of built-in controllers: the name people switch them on and off by, and what makes one.

A new controller is one row here. Order is the order in which they start.
"""

from collections.abc import Callable, Iterable, Mapping

from skysail.api.errors import ConfigError
from skysail.controller.controller import Controller
from skysail.controllers.cronjob.loop import CronJobController
from skysail.controllers.daemonset.loop import DaemonSetController
from skysail.controllers.deployment.loop import DeploymentController
from skysail.controllers.disruption.loop import DisruptionController
from skysail.controllers.garbage.loop import GarbageCollector
from skysail.controllers.job.loop import JobController
from skysail.controllers.namespace.loop import NamespaceController
from skysail.controllers.nodelifecycle.loop import NodeLifecycleController
from skysail.controllers.podgc.loop import PodGCController
from skysail.controllers.quota.loop import ResourceQuotaController
from skysail.controllers.replicaset.loop import ReplicaSetController
from skysail.controllers.serviceaccount.loop import ServiceAccountController
from skysail.controllers.statefulset.loop import StatefulSetController
from skysail.controllers.tainteviction.loop import TaintEvictionController
from skysail.controllers.ttl.loop import TTLAfterFinishedController
from skysail.controllers.volumes.ephemeral import EphemeralVolumeController
from skysail.controllers.volumes.loop import VolumeBinderController
from skysail.controllers.volumes.protection import ClaimProtectionController, VolumeProtectionController
from skysail.controllers.volumes.provisioner import HollowProvisioner

CONTROLLERS: Mapping[str, Callable[[], Controller]] = {
    "deployment-controller": DeploymentController,
    "replicaset-controller": ReplicaSetController,
    "statefulset-controller": StatefulSetController,
    "daemonset-controller": DaemonSetController,
    "job-controller": JobController,
    "cronjob-controller": CronJobController,
    "ttl-after-finished-controller": TTLAfterFinishedController,
    "garbage-collector-controller": GarbageCollector,
    "namespace-controller": NamespaceController,
    "disruption-controller": DisruptionController,
    "node-lifecycle-controller": NodeLifecycleController,
    "taint-eviction-controller": TaintEvictionController,
    "pod-garbage-collector-controller": PodGCController,
    "serviceaccount-controller": ServiceAccountController,
    "resourcequota-controller": ResourceQuotaController,
    "persistentvolume-binder-controller": VolumeBinderController,
    "ephemeral-volume-controller": EphemeralVolumeController,
    "persistentvolumeclaim-protection-controller": ClaimProtectionController,
    "persistentvolume-protection-controller": VolumeProtectionController,
    "hollow-volume-provisioner": HollowProvisioner,
}


def all_controllers() -> list[Controller]:
    """One of each."""
    return [make() for make in CONTROLLERS.values()]


def select_controllers(patterns: Iterable[str]) -> list[str]:
    """The names that `--controllers` chooses: `*` is all, `name` is one, `-name` is all but that one.

    Raises:
        ConfigError: A name is not in the table.
    """
    chosen: dict[str, None] = {}
    refused: set[str] = set()
    for pattern in patterns:
        name = pattern.removeprefix("-")
        if pattern == "*":
            chosen.update(dict.fromkeys(CONTROLLERS))
        elif name not in CONTROLLERS:
            known = ", ".join(CONTROLLERS)
            raise ConfigError(f"there is no controller {name!r}; known are {known}", path="--controllers")
        elif pattern.startswith("-"):
            refused.add(name)
        else:
            chosen[name] = None
    return [name for name in CONTROLLERS if name in chosen and name not in refused]
