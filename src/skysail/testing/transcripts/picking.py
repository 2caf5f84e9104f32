"""Which pods an action means."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from skysail.api.raw import Raw
from skysail.testing.transcripts.naming import Names
from skysail.testing.transcripts.observing import target_node

_INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(slots=True)
class PodHistory:
    """What the player remembers of pods, by uid.

    Attributes:
        born: The step in which a pod first appeared.
        ready_at: The step in which an action last made it ready.
    """

    born: dict[str, int] = field(default_factory=dict)
    ready_at: dict[str, int] = field(default_factory=dict)

    def see(self, pods: Iterable[Raw], step: int) -> None:
        """Note new pods."""
        for pod in pods:
            self.born.setdefault(pod["metadata"]["uid"], step)


def is_ready(pod: Raw) -> bool:
    """Whether the pod's Ready condition is True."""
    listed = pod.get("status", {}).get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in listed)


def pick(pods: Iterable[Raw], action: Raw, names: Names, history: PodHistory) -> list[Raw]:
    """The pods an action chooses: by all its criteria, in order of birth, readiness and name, the first `count`."""
    chosen = sorted(
        (pod for pod in pods if _matches(pod, action, names)),
        key=lambda pod: (
            history.born.get(pod["metadata"]["uid"], 0),
            history.ready_at.get(pod["metadata"]["uid"], -1),
            pod["metadata"]["name"],
        ),
    )
    return chosen[: action["count"]] if "count" in action else chosen


def _matches(pod: Raw, action: Raw, names: Names) -> bool:
    meta, phase = pod["metadata"], pod.get("status", {}).get("phase", "")
    labels = meta.get("labels") or {}
    owner = next((ref["name"] for ref in meta.get("ownerReferences") or () if ref.get("controller")), "")
    tests = (
        "selector" not in action or all(labels.get(key) == value for key, value in action["selector"].items()),
        "names" not in action or meta["name"] in action["names"],
        "owner" not in action or names.of(owner) == action["owner"],
        "index" not in action or (meta.get("annotations") or {}).get(_INDEX) == str(action["index"]),
        "targetNode" not in action or target_node(pod) == action["targetNode"],
        "ready" not in action or is_ready(pod) == action["ready"],
        "phase" not in action or phase in _as_list(action["phase"]),
        bool(meta.get("deletionTimestamp")) == action.get("terminating", action["op"] == "finish_deletion"),
        _node_matches(pod, action),
        _op_accepts(pod, action["op"], phase),
    )
    return all(tests)


def _node_matches(pod: Raw, action: Raw) -> bool:
    """For most actions `node` chooses; where an action binds pods, it says where to."""
    if "node" not in action or action["op"] in ("make_ready", "make_running", "bind"):
        return True
    return bool(pod["spec"].get("nodeName") == action["node"])


def _op_accepts(pod: Raw, op: str, phase: str) -> bool:
    match op:
        case "make_ready" | "make_running":
            return phase in ("Pending", "Running") and not is_ready(pod)
        case "make_unready":
            return is_ready(pod)
        case "fail_pod" | "succeed_pod":
            return phase in ("Pending", "Running")
        case "bind":
            return not pod["spec"].get("nodeName")
    return True


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]
