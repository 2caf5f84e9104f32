"""The extenders of a configuration: who is asked what, in which order, and what becomes of the answers.

    point        asked                       an error of an ignorable one     an error of any other
    filter       one after the other, each   passed over                      the attempt fails with it
                 about what is left
    prioritize   all at once                 passed over                      passed over
    preempt      one after the other, each   passed over                      preemption fails with it
                 about what is left
    bind         the first that binds        passed over                      binding fails with it

Ignorable extenders come last. An extender with `managedResources` is asked only about pods that use one of these.

Source: pkg/scheduler/extender.go, pkg/scheduler/schedule_one.go (findNodesThatPassExtenders, prioritizeNodes),
pkg/scheduler/framework/preemption/preemption.go (callExtenders), v1.36.
Differs: a node that was not asked about is refused in every answer, by name; upstream goes on with it when the extender
keeps no cache of nodes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skysail.api.core import Pod
from skysail.api.node import Node
from skysail.scheduler.cache.snapshot import Snapshot
from skysail.scheduler.config.durations import parse_duration
from skysail.scheduler.config.types import Extender
from skysail.scheduler.extenders.answers import (
    MAX_EXTENDER_PRIORITY,
    AnswerError,
    FilterAnswer,
    out_of_range,
    read_binding,
    read_filter,
    read_node,
    read_preemption,
    read_priorities,
)
from skysail.scheduler.extenders.messages import Body, binding, preemption, selection
from skysail.scheduler.framework.codes import MAX_NODE_SCORE
from skysail.scheduler.framework.conversation import Call, Conversation, ExtenderCall, ExtenderFailed, Reply
from skysail.scheduler.framework.status import Status
from skysail.scheduler.preemption.victims import Victims

EXTENDER = "Extender"
"""Stands for all of them among the plugins that refused a pod."""
DEFAULT_TIMEOUT_SECONDS = 5.0
SCALE = MAX_NODE_SCORE // MAX_EXTENDER_PRIORITY


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that is still in the running.

    Attributes:
        name: Its name.
        node: The Node object: the cluster's, or as an extender sent it back.
        wire: What to send of it to the next extender.
        bare: Whether an extender sent it back: scoring then sees it without its pods.
    """

    name: str
    node: Node
    wire: object
    bare: bool = False


class ExtenderChain:
    """The extenders of a configuration.

    Args:
        extenders: As configured.

    Attributes:
        filters: Whether one of them filters.
        prioritizes: Whether one of them scores.
        preempts: Whether one of them has a say in preemption.
        binds: Whether one of them binds.
    """

    def __init__(self, extenders: Sequence[Extender]) -> None:
        self._extenders = sorted(extenders, key=lambda extender: extender.ignorable)
        self.filters = any(extender.filter_verb for extender in extenders)
        self.prioritizes = any(extender.prioritize_verb for extender in extenders)
        self.preempts = any(extender.preempt_verb for extender in extenders)
        self.binds = any(extender.bind_verb for extender in extenders)

    def __len__(self) -> int:
        return len(self._extenders)

    def filter(
        self, pod: Pod, candidates: Sequence[Candidate], statuses: dict[str, Status], calls: list[ExtenderCall]
    ) -> Conversation[Sequence[Candidate]]:
        """Ask who of the candidates is left.

        Args:
            pod: Under test.
            candidates: Nodes that the plugins let pass.
            statuses: Where refusals go, by node name.
            calls: Where the record of each call goes.

        Raises:
            ExtenderFailed: One that may not be ignored failed.
        """
        for extender in self._interested(pod):
            if not candidates:
                break
            if not extender.filter_verb:
                continue
            body = _selection(extender, pod, candidates)
            reply = (yield (_call(extender, extender.filter_verb, body),))[0]
            try:
                answer = read_filter(extender.url_prefix, _body(extender, extender.filter_verb, reply))
                left = _left(extender, answer, {each.name: each for each in candidates})
            except AnswerError as error:
                _note(calls, extender, "filter", reply, str(error))
                if extender.ignorable:
                    continue
                raise ExtenderFailed(str(error)) from error
            _note(calls, extender, "filter", reply)
            for name, reason in answer.unresolvable_nodes.items():
                statuses[name] = Status.unresolvable(reason)
            for name, reason in answer.failed_nodes.items():
                if name not in answer.unresolvable_nodes:
                    statuses[name] = Status.unschedulable(reason)
            candidates = left
        return candidates

    def prioritize(
        self, pod: Pod, candidates: Sequence[Candidate], calls: list[ExtenderCall]
    ) -> Conversation[Mapping[str, Sequence[int]]]:
        """Ask for scores, all at once. An extender that fails scores nothing.

        Returns:
            By `urlPrefix`, what the extenders there add to the total of each candidate, in their order; none for an
            extender that said nothing about any of them.
        """
        interested = list(self._interested(pod))
        asked = [extender for extender in interested if extender.prioritize_verb]
        replies: Sequence[Reply] = ()
        if asked:
            replies = yield [
                _call(extender, extender.prioritize_verb, _selection(extender, pod, candidates)) for extender in asked
            ]
        points: dict[str, Sequence[int]] = {
            extender.url_prefix: [0] * len(candidates) for extender in interested if not extender.prioritize_verb
        }
        for extender, reply in zip(asked, replies, strict=True):
            try:
                body = _body(extender, extender.prioritize_verb, reply)
                found = read_priorities(extender.url_prefix, body)
            except AnswerError as error:
                _note(calls, extender, "prioritize", reply, str(error))
                continue
            _note(calls, extender, "prioritize", reply, out_of_range(extender.url_prefix, found))
            scores: dict[str, int] = {}
            for each in found:
                scores[each.host] = scores.get(each.host, 0) + each.score * extender.weight * SCALE
            if any(candidate.name in scores for candidate in candidates):
                before = points.get(extender.url_prefix) or [0] * len(candidates)
                given = [scores.get(candidate.name, 0) for candidate in candidates]
                points[extender.url_prefix] = [sum(pair) for pair in zip(before, given, strict=True)]
        return points

    def preempt(
        self, pod: Pod, victims: Mapping[str, Victims], snapshot: Snapshot, calls: list[ExtenderCall]
    ) -> Conversation[Mapping[str, Victims]]:
        """Ask which of the candidates for preemption remain, with which victims.

        Raises:
            ExtenderFailed: One that may not be ignored failed.
        """
        for extender in self._interested(pod):
            if not victims:
                break
            if not extender.preempt_verb:
                continue
            body = preemption(pod, victims, only_uids=extender.node_cache_capable)
            reply = (yield (_call(extender, extender.preempt_verb, body),))[0]
            try:
                found = _victims(extender, _body(extender, extender.preempt_verb, reply), snapshot)
            except AnswerError as error:
                _note(calls, extender, "preempt", reply, str(error))
                if extender.ignorable:
                    continue
                raise ExtenderFailed(str(error)) from error
            _note(calls, extender, "preempt", reply)
            victims = found
        return victims

    def bind(self, pod: Pod, node_name: str) -> Conversation[Status | None]:
        """Bind with the extender that binds this pod; None when none does."""
        for extender in self._interested(pod):
            if not extender.bind_verb:
                continue
            reply = (yield (_call(extender, extender.bind_verb, binding(pod, node_name)),))[0]
            try:
                read_binding(extender.url_prefix, _body(extender, extender.bind_verb, reply))
            except AnswerError as error:
                if extender.ignorable:
                    continue
                return Status.error(str(error))
            return Status()
        return None

    def _interested(self, pod: Pod) -> Sequence[Extender]:
        return [extender for extender in self._extenders if is_interested(extender, pod)]


def is_interested(extender: Extender, pod: Pod) -> bool:
    """Whether the pod uses a resource that the extender manages, or the extender manages none."""
    managed = {resource.name for resource in extender.managed_resources}
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    used = [each.resources for each in containers if each.resources is not None] if managed else []
    return not managed or any(
        not managed.isdisjoint(resources.requests) or not managed.isdisjoint(resources.limits) for resources in used
    )


def _call(extender: Extender, verb: str, body: Body) -> Call:
    seconds = parse_duration(extender.http_timeout) or DEFAULT_TIMEOUT_SECONDS
    return Call(extender.url_prefix, verb, f"{extender.url_prefix.rstrip('/')}/{verb}", body, seconds)


def _selection(extender: Extender, pod: Pod, candidates: Sequence[Candidate]) -> Body:
    if extender.node_cache_capable:
        return selection(pod, names=[each.name for each in candidates])
    return selection(pod, nodes=[each.wire for each in candidates])


def _body(extender: Extender, verb: str, reply: Reply) -> bytes:
    if reply.error:
        raise AnswerError(reply.error)
    if reply.status != 200:
        url = f"{extender.url_prefix.rstrip('/')}/{verb}"
        raise AnswerError(f"failed {verb} with extender at URL {url}, code {reply.status}")
    return reply.body


def _note(calls: list[ExtenderCall], extender: Extender, verb: str, reply: Reply, error: str = "") -> None:
    calls.append(ExtenderCall(extender.url_prefix, verb, reply.seconds, error))


def _left(extender: Extender, answer: FilterAnswer, asked: Mapping[str, Candidate]) -> Sequence[Candidate]:
    """The candidates that an answer leaves; nodes that it holds itself take the place of the cluster's."""
    if extender.node_cache_capable and answer.node_names is not None:
        return [_known(extender, name, asked) for name in dict.fromkeys(answer.node_names)]
    if answer.nodes is None:
        return []
    left: dict[str, Candidate] = {}
    for raw in answer.nodes.items:
        node = read_node(extender.url_prefix, raw)
        name = _known(extender, node.name, asked).name
        left[name] = Candidate(name, node, raw, bare=True)
    return list(left.values())


def _known(extender: Extender, name: str, asked: Mapping[str, Candidate]) -> Candidate:
    found = asked.get(name)
    if found is None:
        raise AnswerError(
            f'extender "{extender.url_prefix}" claims a filtered node "{name}" which is not found in the input '
            "node list"
        )
    return found


def _victims(extender: Extender, body: bytes, snapshot: Snapshot) -> dict[str, Victims]:
    found: dict[str, Victims] = {}
    for name, meta in read_preemption(extender.url_prefix, body).victims.items():
        info = snapshot.get(name)
        if info is None:
            raise AnswerError(f'nodeinfo not found for node name "{name}"')
        pods = [info.pods.get(each.uid) for each in meta.pods] if meta is not None else []
        for each, pod in zip(meta.pods if meta is not None else (), pods, strict=True):
            if pod is None:
                raise AnswerError(
                    f"extender: {extender.url_prefix} claims to preempt pod (UID: &{{{each.uid}}}) on node: {name}, "
                    "but the pod is not found on that node"
                )
        if pods and meta is not None:
            found[name] = Victims(tuple(pod for pod in pods if pod is not None), meta.violations)
        elif not extender.ignorable:
            raise AnswerError(f'expected at least one victim pod on node "{name}"')
    return found
