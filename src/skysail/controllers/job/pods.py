"""The pods a job makes: its template, the tracking finalizer, and for indexed jobs the index in four places.

Source: pkg/controller/job/job_controller.go, indexed_job_utils.go, v1.36.
"""

from skysail.api.batch import Job
from skysail.api.kinds import JOBS
from skysail.api.raw import Raw
from skysail.controllers.job.plan import NewPod
from skysail.controllers.job.view import INDEX, INDEX_FAILURES, INDEX_IGNORED_FAILURES, TRACKING_FINALIZER
from skysail.controllers.templates import controller_reference, pod_from_template

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
_MAX_PREFIX = 58
_DELETE = "$deleteFromPrimitiveList/finalizers"

RELEASE_PATCH: Raw = {"metadata": {_DELETE: [TRACKING_FINALIZER]}}
"""The strategic merge patch that takes the tracking finalizer off."""


def job_pod(job: Job, new: NewPod) -> Raw:
    """The pod to create."""
    owner = controller_reference(job, JOBS.api_version, JOBS.name)
    body = pod_from_template(job.spec.template, job.name, owner)
    finalizers = body["metadata"].get("finalizers") or []
    if TRACKING_FINALIZER not in finalizers:
        body["metadata"]["finalizers"] = [*finalizers, TRACKING_FINALIZER]
    if new.index is not None:
        _put_index(body, job.name, new)
    return body


def _put_index(body: Raw, job_name: str, new: NewPod) -> None:
    index = str(new.index)
    metadata, spec = body["metadata"], body["spec"]
    metadata["annotations"] = {**metadata.get("annotations", {}), INDEX: index}
    if new.failures is not None:
        metadata["annotations"][INDEX_FAILURES] = str(new.failures)
        if new.ignored_failures:
            metadata["annotations"][INDEX_IGNORED_FAILURES] = str(new.ignored_failures)
    metadata["labels"] = {**metadata.get("labels", {}), INDEX: index}
    metadata["generateName"] = f"{job_name[: _MAX_PREFIX - len(index) - 2]}-{index}-"
    body["spec"] = {
        **spec,
        "hostname": f"{job_name}-{index}",
        **{key: [_with_index(item) for item in spec[key]] for key in ("containers", "initContainers") if key in spec},
    }


def _with_index(container: Raw) -> Raw:
    variables = container.get("env") or []
    if any(variable["name"] == INDEX_VARIABLE for variable in variables):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    return {**container, "env": [*variables, {"name": INDEX_VARIABLE, "valueFrom": source}]}
