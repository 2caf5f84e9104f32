"""Deployments, DaemonSets, Jobs and CronJobs: what does not fit into a row of rules.

Source: pkg/registry/apps/*/strategy.go, pkg/registry/batch/*/strategy.go, v1.36.
"""

from collections.abc import Sequence

from skysail.api.raw import Raw
from skysail.apiserver.contract import RequestContext
from skysail.apiserver.strategies.generic import GenericStrategy, Rules, keep
from skysail.apiserver.strategies.pod_warnings import template_warnings
from skysail.apiserver.validation.field import same
from skysail.apiserver.validation.names import dns_label

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_CONTROLLER_UID = ("controller-uid", "batch.kubernetes.io/controller-uid")
_JOB_NAME = ("job-name", "batch.kubernetes.io/job-name")
_ENDLESS_HISTORY = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)
_ZONE_IN_SCHEDULE = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)
JOB_ORPHAN_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


class TemplateStrategy(GenericStrategy):
    """A kind that holds a template of pods, and warns of what is odd about it."""

    def __init__(self, rules: Rules, place: tuple[str, ...] = ("spec", "template")) -> None:
        super().__init__(rules)
        self._template_warnings = template_warnings(place)

    def warnings(self, new: Raw, old: Raw | None, ctx: RequestContext) -> Sequence[str]:
        """Of the template, when it is new."""
        if old is not None and new["metadata"].get("generation") == old["metadata"].get("generation"):
            return ()
        return self._template_warnings(new)


class PodControllerStrategy(TemplateStrategy):
    """A kind whose name becomes part of the names of its pods."""

    def warnings(self, new: Raw, old: Raw | None, ctx: RequestContext) -> Sequence[str]:
        """Of the template, and of a dot in the name, which ends up in hostnames."""
        messages = dns_label(new["metadata"].get("name") or "") if old is None else ()
        named = [
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(messages)}]"
        ]
        return [*(named if messages else ()), *super().warnings(new, old, ctx)]


class DeploymentStrategy(PodControllerStrategy):
    """Annotations count for the generation too, as they are copied to the ReplicaSets."""

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Keep the status, count the generation."""
        keep(new, old, "status")
        generation = old["metadata"].get("generation") or 0
        if not same(new["spec"], old["spec"]) or not same(
            new["metadata"].get("annotations"), old["metadata"].get("annotations")
        ):
            generation += 1
        new["metadata"]["generation"] = generation


class StatefulSetStrategy(TemplateStrategy):
    """Knows `maxUnavailable` only behind a gate that is off."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Drop what the gate hides."""
        super().prepare_create(obj, ctx)
        _drop_max_unavailable(obj, {})

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """Drop what the gate hides, unless it was there."""
        _drop_max_unavailable(new, old)
        super().prepare_update(new, old, ctx)

    def warnings(self, new: Raw, old: Raw | None, ctx: RequestContext) -> Sequence[str]:
        """Also of a history without an end."""
        found = list(super().warnings(new, old, ctx))
        if (new["spec"].get("revisionHistoryLimit") or 0) < 0:
            found.append(_ENDLESS_HISTORY)
        return found


def _drop_max_unavailable(new: Raw, old: Raw) -> None:
    def rolling_update(obj: Raw) -> Raw:
        block: Raw = ((obj.get("spec") or {}).get("updateStrategy") or {}).get("rollingUpdate") or {}
        return block

    if rolling_update(old).get("maxUnavailable") is None:
        rolling_update(new).pop("maxUnavailable", None)


class DaemonSetStrategy(TemplateStrategy):
    """Keeps the template's own generation in an annotation."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Template generation 1, unless one was brought along."""
        super().prepare_create(obj, ctx)
        annotations = obj["metadata"].get("annotations") or {}
        if not str(annotations.get(_TEMPLATE_GENERATION) or "").isdigit() or annotations[_TEMPLATE_GENERATION] == "0":
            annotations = {**annotations, _TEMPLATE_GENERATION: "1"}
        obj["metadata"]["annotations"] = annotations

    def prepare_update(self, new: Raw, old: Raw, ctx: RequestContext) -> None:
        """A changed template is a new template generation."""
        super().prepare_update(new, old, ctx)
        before = str((old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION) or "0")
        generation = int(before) if before.isdigit() else 0
        if not same(new["spec"].get("template"), old["spec"].get("template")):
            generation += 1
        if generation:
            new["metadata"]["annotations"] = {
                **(new["metadata"].get("annotations") or {}), _TEMPLATE_GENERATION: str(generation),
            }  # fmt: skip


class CronJobStrategy(PodControllerStrategy):
    """Its template lies deeper."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules, ("spec", "jobTemplate", "spec", "template"))

    def warnings(self, new: Raw, old: Raw | None, ctx: RequestContext) -> Sequence[str]:
        """Also of a time zone in the schedule of an old CronJob."""
        found = list(super().warnings(new, old, ctx))
        if old is not None and "TZ" in (new["spec"].get("schedule") or ""):
            found.append(_ZONE_IN_SCHEDULE)
        return found


class JobStrategy(PodControllerStrategy):
    """Marks its pods with its uid, and orphans them when it is deleted without a policy."""

    def prepare_create(self, obj: Raw, ctx: RequestContext) -> None:
        """Generate the selector, unless it is managed by hand."""
        super().prepare_create(obj, ctx)
        spec = obj["spec"]
        if spec.get("manualSelector"):
            return
        metadata = spec["template"]["metadata"]
        shared = metadata.get("labels") is not None and metadata["labels"] == obj["metadata"].get("labels")
        labels = dict(metadata.get("labels") or {})
        for key in _JOB_NAME:
            labels.setdefault(key, obj["metadata"].get("name") or "")
        uid = obj["metadata"].get("uid") or ""
        for key in _CONTROLLER_UID:
            labels.setdefault(key, uid)
        metadata["labels"] = labels
        if shared or not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)
        selector = spec.get("selector") or {}
        match = dict(selector.get("matchLabels") or {})
        match.setdefault(_CONTROLLER_UID[1], uid)
        spec["selector"] = {**selector, "matchLabels": match}

    def default_propagation(self, ctx: RequestContext) -> str:
        """Orphan in batch/v1, as it always was, with a warning."""
        if (ctx.resource.group, ctx.resource.version) != ("batch", "v1"):
            return ""
        ctx.warnings.append(JOB_ORPHAN_WARNING)
        return "Orphan"
