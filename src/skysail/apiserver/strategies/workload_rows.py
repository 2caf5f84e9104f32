"""The rows of what makes pods: the groups apps and batch."""

from collections.abc import Mapping

from skysail.apiserver.strategies.defaults import workloads
from skysail.apiserver.strategies.generic import SPEC, STATUS_REPLICAS, GenericStrategy, Rules
from skysail.apiserver.strategies.workloads import (
    CronJobStrategy,
    DaemonSetStrategy,
    DeploymentStrategy,
    JobStrategy,
    PodControllerStrategy,
    StatefulSetStrategy,
)
from skysail.apiserver.validation import (
    apps,
    cron_jobs,
    jobs,
)
from skysail.apiserver.validation.names import dns_label

APPS: Mapping[str, GenericStrategy] = {
    "deployments": DeploymentStrategy(
        Rules(
            status=True,
            generation=SPEC,
            defaults=workloads.deployment,
            validate=apps.deployment,
            validate_update=apps.selector_is_fixed,
        )
    ),
    "replicasets": PodControllerStrategy(
        Rules(
            status=True,
            first_status={"replicas": 0},
            generation=SPEC,
            defaults=workloads.replica_set,
            validate=apps.replica_set,
            validate_update=apps.selector_is_fixed,
            fields=STATUS_REPLICAS,
        )
    ),
    "statefulsets": StatefulSetStrategy(
        Rules(
            name_check=dns_label,
            status=True,
            first_status={"replicas": 0, "availableReplicas": 0},
            generation=SPEC,
            defaults=workloads.stateful_set,
            validate=apps.stateful_set,
            validate_update=apps.stateful_set_update,
            revalidate=False,
        )
    ),
    "daemonsets": DaemonSetStrategy(
        Rules(
            status=True,
            first_status={
                "currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0,
            },
            generation=SPEC,
            defaults=workloads.daemon_set,
            validate=apps.daemon_set,
            validate_update=apps.daemon_set_update,
            revalidate=False,
        )
    ),
    "controllerrevisions": GenericStrategy(
        Rules(
            defaults=workloads.controller_revision,
            validate=apps.controller_revision,
            validate_update=apps.controller_revision_update,
            revalidate=False,
        )
    ),
}  # fmt: skip

BATCH: Mapping[str, GenericStrategy] = {
    "jobs": JobStrategy(
        Rules(
            status=True,
            generation=SPEC,
            defaults=workloads.job,
            validate=jobs.job,
            validate_update=jobs.job_update,
            revalidate=False,
            fields={"status.successful": ("status", "succeeded")},
        )
    ),
    "cronjobs": CronJobStrategy(
        Rules(
            status=True,
            generation=SPEC,
            defaults=workloads.cron_job,
            validate=cron_jobs.cron_job,
            validate_update=cron_jobs.cron_job_update,
            revalidate=False,
        )
    ),
}
