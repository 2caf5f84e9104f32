"""A profile, ready to run: its plugins at their extension points.

The framework is handed plugin objects and never imports one. What it answers for many nodes at once stands in
`evaluation` (the plain path) and `incremental` (the quick one); the points after a node is chosen (Reserve to PostBind)
are run by the cycle (`skysail.scheduler.binding`).

Source: pkg/scheduler/framework/runtime/framework.go, v1.36.
"""

# mypy: disable-error-code="type-abstract"
# Protocols are handed to isinstance here, which is what they are for.

from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from skysail.api.core import Pod
from skysail.scheduler.cache.node_info import NodeInfo
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.framework.codes import Reads
from skysail.scheduler.framework.containment import PluginFailed, checked_pair, checked_status, contained, failed
from skysail.scheduler.framework.conversation import Conversation, alone
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.diagnosis import Diagnosis
from skysail.scheduler.framework.plugin import (
    Bind,
    EnqueueExtensions,
    Filter,
    Idle,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreFilterExtensions,
    PreScore,
    QueueSort,
    Reserve,
    Score,
    TableFilter,
    TableScore,
)
from skysail.scheduler.framework.status import SUCCESS, Code, Status
from skysail.scheduler.framework.steps import FilterStep, PreFilterStep, PreScoreStep, ScoreStep, reads_of, signer_of

T = TypeVar("T")


class Framework:
    """One profile.

    Args:
        scheduler_name: Whose pods it schedules.
        points: For each point (`pre_filter`, `score`, ...) its plugins, in order.
        weights: The weight of each Score plugin; 1 when absent.

    Attributes:
        queue_sort: The one plugin that orders the queue.

    Raises:
        TypeError: A plugin lacks the method of a point it is enabled at.
    """

    def __init__(
        self, scheduler_name: str, points: Mapping[str, Sequence[Plugin]], weights: Mapping[str, int] | None = None
    ) -> None:
        self.scheduler_name = scheduler_name
        self._points = points
        weights = weights or {}
        self.pre_enqueue = self._at("pre_enqueue", PreEnqueue)
        self.queue_sort = next(iter(self._at("queue_sort", QueueSort)), None)
        pre_filters = self._at("pre_filter", PreFilter)
        self.pre_filter = tuple(PreFilterStep(plugin) for plugin in pre_filters)
        self.extensions = tuple(plugin for plugin in pre_filters if isinstance(plugin, PreFilterExtensions))
        self.filters = tuple(FilterStep(plugin, order) for order, plugin in enumerate(self._filters()))
        self.post_filter = self._at("post_filter", PostFilter)
        self.pre_score = tuple(PreScoreStep(plugin) for plugin in self._at("pre_score", PreScore))
        self.scores = tuple(ScoreStep(plugin, weights.get(plugin.name, 1)) for plugin in self._scores())
        self.reserve = self._at("reserve", Reserve)
        self.permit = self._at("permit", Permit)
        self.pre_bind = self._at("pre_bind", PreBind)
        self.bind = self._at("bind", Bind)
        self.post_bind = self._at("post_bind", PostBind)
        evaluated = {plugin.name: plugin for point in _EVALUATED for plugin in points.get(point, ())}
        shared = [plugin for plugin in evaluated.values() if reads_of(plugin) is not Reads.GLOBAL]
        idle = [plugin.idle for plugin in evaluated.values() if isinstance(plugin, Idle)]
        self._signers = (*(signer_of(plugin) for plugin in shared), *idle)
        for plugin in self.plugins.values():
            if isinstance(plugin, UsesFramework):
                plugin.use_framework(self)

    def _at(self, point: str, protocol: type[T]) -> tuple[T, ...]:
        return tuple(_as(plugin, protocol, point) for plugin in self._points.get(point, ()))

    def _filters(self) -> tuple[Filter | TableFilter, ...]:
        tables = self._points.get("filter", ())
        return tuple(plugin if isinstance(plugin, TableFilter) else _as(plugin, Filter, "filter") for plugin in tables)

    def _scores(self) -> tuple[Score | TableScore, ...]:
        tables = self._points.get("score", ())
        return tuple(plugin if isinstance(plugin, TableScore) else _as(plugin, Score, "score") for plugin in tables)

    @property
    def plugins(self) -> Mapping[str, Plugin]:
        """Every plugin once, by name."""
        return {plugin.name: plugin for plugins in self._points.values() for plugin in plugins}

    @property
    def points(self) -> Mapping[str, Sequence[Plugin]]:
        """The plugins of each point, as they were handed in."""
        return self._points

    def enqueue_extensions(self) -> tuple[EnqueueExtensions, ...]:
        """Plugins that say which events concern them."""
        return tuple(plugin for plugin in self.plugins.values() if isinstance(plugin, EnqueueExtensions))

    def sign(self, pod: PodInfo) -> Hashable:
        """Equal for two pods only if every plugin that is not GLOBAL answers the same for both.

        Raises:
            PluginFailed: A plugin could not sign.
        """
        try:
            return tuple([sign(pod) for sign in self._signers])
        except BaseException as error:
            raise failed("", "signing a pod", error) from error

    def idle_plugins(self, pod: PodInfo) -> frozenset[str]:
        """PreFilter and PreScore plugins that have nothing to do for pods of this signature.

        Raises:
            PluginFailed: A plugin raised.
        """
        steps: tuple[PreFilterStep | PreScoreStep, ...] = (*self.pre_filter, *self.pre_score)
        return frozenset(step.name for step in steps if contained(step.name, "reading a pod", step.idle, pod))

    # -- before the queue ------------------------------------------------------------------------------------------

    def run_pre_enqueue(self, pod: Pod) -> Status:
        """The first refusal, signed, or success. A plugin that raises refuses."""
        for plugin in self.pre_enqueue:
            try:
                status = pre_enqueue(plugin, pod)
            except PluginFailed as failure:
                return failure.status()
            if not status.is_success:
                return status.with_plugin(plugin.name)
        return SUCCESS

    # -- what-ifs --------------------------------------------------------------------------------------------------

    def run_add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node: NodeInfo) -> None:
        """Tell PreFilter's state that a pod is on a node, in a what-if.

        Raises:
            PluginFailed: A plugin raised or refused.
        """
        for plugin in self.extensions:
            if plugin.name not in state.skip_filter_plugins:
                doing = f'running AddPod on PreFilter plugin "{plugin.name}"'
                _expect(contained(plugin.name, doing, plugin.add_pod, state, pod, added, node), plugin.name, doing)

    def heeds_added_pods(self, state: CycleState) -> bool:
        """Whether a pod more on a node can change what PreFilter remembered."""
        return any(plugin.name not in state.skip_filter_plugins for plugin in self.extensions)

    def run_remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node: NodeInfo) -> None:
        """Tell PreFilter's state that a pod is gone from a node, in a what-if.

        Raises:
            PluginFailed: A plugin raised or refused.
        """
        for plugin in self.extensions:
            if plugin.name not in state.skip_filter_plugins:
                doing = f'running RemovePod on PreFilter plugin "{plugin.name}"'
                _expect(contained(plugin.name, doing, plugin.remove_pod, state, pod, removed, node), plugin.name, doing)

    # -- after a refusal -------------------------------------------------------------------------------------------

    def run_post_filter(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> tuple[Status, PostFilterResult]:
        """The first success, unresolvable refusal or error ends it; refusals add up their reasons."""
        return alone(self.post_filter_asking(state, pod, diagnosis))

    def post_filter_asking(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> Conversation[tuple[Status, PostFilterResult]]:
        """`run_post_filter`, where plugins may ask extenders."""
        reasons: list[str] = []
        rejector, result = "", PostFilterResult()
        for plugin in self.post_filter:
            try:
                status, found = yield from self._post_filter_one(plugin, state, pod, diagnosis)
            except PluginFailed as failure:
                return failure.status(), PostFilterResult()
            if status.is_success:
                return status, found
            if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return status.with_plugin(plugin.name), found
            if not status.is_rejected:
                return Status.error(*status.reasons, plugin=plugin.name), PostFilterResult()
            if found.nominated_node is not None:
                result = found
            reasons += status.reasons
            rejector = rejector or plugin.name
        return Status(Code.UNSCHEDULABLE, tuple(reasons), rejector), result

    def _post_filter_one(
        self, plugin: PostFilter, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> Conversation[tuple[Status, PostFilterResult]]:
        doing = f'running PostFilter plugin "{plugin.name}"'
        if not isinstance(plugin, AskingPostFilter) or not plugin.asks:
            return contained(
                plugin.name, doing, lambda: checked_pair(plugin.post_filter(state, pod, diagnosis), PostFilterResult)
            )
        try:
            answer = yield from plugin.post_filter_asking(state, pod, diagnosis)
            return checked_pair(answer, PostFilterResult)
        except GeneratorExit:  # whoever held the conversation gave it up
            raise
        except BaseException as error:
            raise failed(plugin.name, doing, error) from error


@runtime_checkable
class AskingPostFilter(Protocol):
    """A PostFilter plugin that asks extenders.

    Attributes:
        asks: Whether there are any to ask; `post_filter` is called when not.
    """

    name: str
    asks: bool

    def post_filter_asking(
        self, state: CycleState, pod: Pod, diagnosis: Diagnosis
    ) -> Conversation[tuple[Status, PostFilterResult]]:
        """`post_filter`, as a conversation."""
        ...


@runtime_checkable
class UsesFramework(Protocol):
    """A plugin that runs other plugins: it is given the profile once that is made."""

    name: str

    def use_framework(self, framework: Framework) -> None:
        """Take it."""
        ...


def pre_enqueue(plugin: PreEnqueue, pod: Pod) -> Status:
    """Ask a PreEnqueue plugin.

    Raises:
        PluginFailed: It raised, or answered nonsense.
    """
    doing = f'running PreEnqueue plugin "{plugin.name}"'
    return contained(plugin.name, doing, lambda: checked_status(plugin.pre_enqueue(pod)))


_EVALUATED = ("pre_filter", "filter", "pre_score", "score")
_TABLE_FORM = {"filter": ("filter_rows", "explain", "reads"), "score": ("score_rows", "reads")}
"""What a plugin must have, all of it, to answer for many nodes at once."""


def _as(plugin: Plugin, protocol: type[T], point: str) -> T:
    if isinstance(plugin, protocol):
        return plugin
    needs = _TABLE_FORM.get(point, ())
    lacks = [name for name in needs if not hasattr(plugin, name)]
    hint = f": it has {needs[0]}, but no {' and no '.join(lacks)}" if needs and needs[0] not in lacks else ""
    raise TypeError(f"plugin {plugin.name!r} does not extend {point}{hint}")


def _expect(status: Status, plugin: str, doing: str) -> None:
    if not status.is_success:
        raise PluginFailed(plugin, f"{doing}: {status.message}")
