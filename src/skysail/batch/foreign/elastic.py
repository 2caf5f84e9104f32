"""ElasticQuota: the scheduler-plugins' (`scheduling.x-k8s.io`, earlier `scheduling.sigs.k8s.io`) and Koordinator's.

`max` is the capability, `min` the deserved share, and the guarantee too where it is not lent out
(`quota.scheduling.koordinator.sh/allow-lent-resource: "false"`).

The scheduler-plugins' quota is for its namespace: its queue is called `NAMESPACE/NAME`, and `namespaces` says whose
pods go there. Koordinator's is named by its pods, may have a parent, and keeps its name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from skysail.api.meta import ApiObject, Struct
from skysail.api.raw import Raw
from skysail.batch.foreign.decoding import Amount, about, decode
from skysail.batch.kinds.queue import QueueStatus
from skysail.batch.kinds.reading import Notes, Problem, QueueRecords, created, figures_of
from skysail.batch.model import specs
from skysail.batch.model.resources import ANY, FlavorResource

KOORDINATOR: Final = "quota.scheduling.koordinator.sh/"


class ElasticQuotaSpec(Struct, frozen=True, gc=False):
    """An ElasticQuota's spec."""

    min: Mapping[str, Amount] = {}
    max: Mapping[str, Amount] = {}


class ElasticQuota(ApiObject, frozen=True, gc=False, kw_only=True):
    """An ElasticQuota."""

    spec: ElasticQuotaSpec = ElasticQuotaSpec()


@dataclass(slots=True)
class ElasticRecords:
    """What ElasticQuotas say.

    Attributes:
        records: Their queues.
        namespaces: By namespace, the queue of pods that name none.
    """

    records: QueueRecords = field(default_factory=QueueRecords)
    namespaces: dict[str, str] = field(default_factory=dict)


def read_quotas(quotas: Iterable[Raw]) -> ElasticRecords:
    """What all ElasticQuotas say; of two in one namespace the first by name counts for its pods."""
    found = ElasticRecords()
    for raw in quotas:
        quota = decode(raw, ElasticQuota)
        if isinstance(quota, Problem):
            found.records.problems.append(quota)
            continue
        notes = Notes(about(raw))
        queue = _queue(quota, notes)
        found.records.queues[queue.name] = queue
        found.records.problems += notes.problems
        if "/" in queue.name:
            known = found.namespaces.setdefault(quota.namespace, queue.name)
            found.namespaces[quota.namespace] = min(known, queue.name)
    return found


def said(quota: ElasticQuota, word: str) -> str:
    """What a label or annotation of Koordinator says; empty for nothing."""
    metadata = quota.metadata
    return metadata.labels.get(KOORDINATOR + word) or metadata.annotations.get(KOORDINATOR + word, "")


def is_koordinators(quota: ElasticQuota) -> bool:
    """Whether it is one of Koordinator's tree."""
    metadata = quota.metadata
    return any(key.startswith(KOORDINATOR) for key in (*metadata.labels, *metadata.annotations))


def _queue(quota: ElasticQuota, notes: Notes) -> specs.QueueSpec:
    deserved = notes.amounts({name: str(amount) for name, amount in quota.spec.min.items()}, "min")
    capability = notes.amounts({name: str(amount) for name, amount in quota.spec.max.items()}, "max")
    koordinator = is_koordinators(quota)
    lent = said(quota, "allow-lent-resource") != "false"
    parent = said(quota, "parent")
    tree = said(quota, "tree-id")
    if tree:
        notes.say(f"tree-id {tree}: all trees share one cluster; give each a queue of its own on top")
    return specs.QueueSpec(
        name=quota.name if koordinator else quota.key,
        uid=quota.uid,
        parent=parent if parent and parent != "koordinator-root-quota" else specs.ROOT,
        figures=figures_of(ANY, {} if lent else deserved, deserved, capability, _weights(quota, notes), notes),
        created=created(quota),
    )


def _weights(quota: ElasticQuota, notes: Notes) -> Mapping[str, int]:
    """Koordinator's shared weight: a resource list as JSON in an annotation."""
    text = said(quota, "shared-weight")
    if not text:
        return {}
    try:
        found = msgspec.json.decode(text, type=dict[str, int | float | str])
    except msgspec.DecodeError as error:
        notes.say(f"shared-weight: {error}")
        return {}
    return notes.amounts({name: str(amount) for name, amount in found.items()}, "shared-weight")


def quota_status(status: QueueStatus, spec: specs.QueueSpec) -> Raw:
    """An ElasticQuota's status: what is used, of the resources it names."""
    named: set[FlavorResource] = set(spec.figures)
    return {"used": {name: status.allocated.get(name, "0") for _, name in sorted(named)}}
