"""Extenders of a recorded scenario: their answers played from a script, what they were sent kept for comparison.

A rule for a verb: `{}` is the plain answer, which returns the nodes (or victims) of the request.

    http_status     answer with this status and no body     text    answer 200 with this body     empty   answer {}
    reject          {node: reason or null}: left out; with a reason they stand in failedNodes too
    reject_unresolvable   {node: reason}: left out, and in failedAndUnresolvableNodes
    foreign_nodes   names appended to nodenames                  error   the error field of the filter answer
    scores          {node: score}                                drop, set   preempt: leave out, replace these nodes

The names of scripted extenders are the last part of their `urlPrefix`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.api.raw import Raw
from skysail.scheduler.extenders.messages import with_whole_objects
from skysail.scheduler.framework.conversation import Call, Reply

_NODE_INFO = (
    "architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion",
    "machineID", "operatingSystem", "osImage", "systemUUID",
)  # fmt: skip


class Requests:
    """What is sent to extenders: bodies with whole objects, kept for whoever wants to see them.

    Args:
        objects: Manifests of the cluster's nodes and pods, and of the pod under test.

    Attributes:
        requests: Extender, verb and body, in order.
    """

    def __init__(self, objects: Iterable[Raw]) -> None:
        self._whole = {_key(raw["kind"], raw["metadata"]): go_form(raw) for raw in objects}
        self.requests: list[Raw] = []

    def note(self, call: Call) -> Any:
        """Note a request; its body."""
        body: Any = with_whole_objects(call.body, self._object)
        name = extender_name(call.callee)
        self.requests.append({"extender": name, "verb": call.verb, "body": sorted_lists(body)})
        return body

    def _object(self, obj: Pod | Node) -> object:
        kind = "Pod" if isinstance(obj, Pod) else "Node"
        metadata = {"namespace": obj.namespace, "name": obj.name}
        return self._whole.get(_key(kind, metadata), obj)


class ScriptedExtenders(Requests):
    """Plays the extenders of one scenario.

    Args:
        answers: `extender_answers`: by extender, by verb.
        objects: See `Requests`.
    """

    def __init__(self, answers: Mapping[str, Mapping[str, Raw]], objects: Iterable[Raw]) -> None:
        super().__init__(objects)
        self._answers = answers

    def answer(self, call: Call) -> Reply:
        """Note the request, give the scripted answer."""
        body = self.note(call)
        rule = self._answers.get(extender_name(call.callee), {}).get(call.verb, {})
        if "http_status" in rule:
            return Reply(rule["http_status"])
        if "text" in rule:
            return Reply(200, rule["text"].encode())
        answer = {} if rule.get("empty") else _ANSWERS[call.verb](body, rule)
        return Reply(200, msgspec.json.encode(answer))


def _key(kind: str, metadata: Raw) -> tuple[str, str, str]:
    return kind, metadata.get("namespace", ""), metadata["name"]


def extender_name(url_prefix: str) -> str:
    """What an extender is called in a script."""
    return url_prefix.rstrip("/").rpartition("/")[2]


def go_form(raw: Raw) -> Raw:
    """A manifest with the fields that Go's types always write, and a pod's scheduler name: as a server shows it."""
    if raw["kind"] == "Node":
        status = {
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": dict.fromkeys(_NODE_INFO, ""),
            **raw.get("status", {}),
        }
        return {**raw, "spec": raw.get("spec", {}), "status": status}
    if raw["kind"] == "Pod":
        spec = {"schedulerName": "default-scheduler", **raw.get("spec", {})}
        for field in ("containers", "initContainers"):
            if field in spec:
                spec[field] = [{"resources": {}, **container} for container in spec[field]]
        return {**raw, "spec": spec, "status": raw.get("status", {})}
    return raw


def sorted_lists(body: Raw) -> Raw:
    """A request with its lists of nodes sorted by name, as recorded."""
    found = dict(body)
    if found.get("NodeNames"):
        found["NodeNames"] = sorted(found["NodeNames"])
    if found.get("Nodes"):
        items = sorted(found["Nodes"]["items"], key=lambda node: node["metadata"]["name"])
        found["Nodes"] = {**found["Nodes"], "items": items}
    return found


def in_recorded_order(requests: Iterable[Raw], *, scored: bool) -> list[Raw]:
    """Requests as recorded: those to prioritize, which go out together, last and by the extender's name.

    Args:
        requests: In the order in which they were made.
        scored: Whether there was a choice; without one nobody is asked to prioritize, but what it would give is shown.
    """
    before = [each for each in requests if each["verb"] != "prioritize"]
    together = [each for each in requests if each["verb"] == "prioritize"]
    return before + (sorted(together, key=lambda each: str(each["extender"])) if scored else [])


def comparable_requests(requests: Iterable[Raw]) -> list[Raw]:
    """Requests without the uids of nodes, which the recorder made up."""
    found = []
    for request in requests:
        body = dict(request["body"])
        if body.get("Nodes"):
            items = [{**node, "metadata": _without_uid(node["metadata"])} for node in body["Nodes"]["items"]]
            body["Nodes"] = {**body["Nodes"], "items": items}
        found.append({**request, "body": body})
    return found


def _without_uid(metadata: Raw) -> Raw:
    return {key: value for key, value in metadata.items() if key != "uid"}


def _filtered(body: Raw, rule: Raw) -> Raw:
    reject, unresolvable = rule.get("reject", {}), rule.get("reject_unresolvable", {})
    names = body["NodeNames"]
    asked = names if names is not None else [node["metadata"]["name"] for node in body["Nodes"]["items"]]
    gone = {name for name in asked if name in reject or name in unresolvable}
    answer: Raw = {
        "failedNodes": {name: reason for name, reason in reject.items() if name in asked and reason is not None},
        "failedAndUnresolvableNodes": {name: reason for name, reason in unresolvable.items() if name in asked},
        "error": rule.get("error", ""),
    }
    if names is not None:
        answer["nodenames"] = [name for name in names if name not in gone] + rule.get("foreign_nodes", [])
    else:
        items = [node for node in body["Nodes"]["items"] if node["metadata"]["name"] not in gone]
        answer["nodes"] = {"items": items}
    return answer


def _priorities(body: Raw, rule: Raw) -> list[Raw]:
    return [{"host": host, "score": score} for host, score in sorted(rule.get("scores", {}).items())]


def _preempted(body: Raw, rule: Raw) -> Raw:
    victims = body["NodeNameToMetaVictims"]
    if victims is None:
        victims = {
            name: {
                "pods": [{"uid": pod["metadata"]["uid"]} for pod in each["Pods"]],
                "numPDBViolations": each["NumPDBViolations"],
            }
            for name, each in body["NodeNameToVictims"].items()
        }
    left = {name: each for name, each in victims.items() if name not in rule.get("drop", ())}
    replaced = {name: each for name, each in rule.get("set", {}).items() if name in left}
    return {"nodeNameToMetaVictims": left | replaced}


_ANSWERS = {"filter": _filtered, "prioritize": _priorities, "preempt": _preempted}
