"""Enabled plugins, in the shape the evaluation wants them: one form, one question, whichever form the author chose.

A step asks a plugin about rows of the table. A simple plugin is asked once for each row that is still in the running;
a table plugin is asked once. Whatever a plugin raises is contained and named here.
"""

from collections.abc import Callable, Hashable, Set
from operator import index as index_number
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from skysail.api.core import Pod, PodStatus
from skysail.api.meta import ObjectMeta
from skysail.scheduler.cache.matrices import RowIndex, Rows
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    CodeArray,
    Codes,
    Reads,
    ScoreArray,
    zero_scores,
)
from skysail.scheduler.framework.containment import PluginFailed, checked_pair, checked_status, failed
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.plugin import (
    ALL_NODES,
    Filter,
    Idle,
    Normalize,
    Plugin,
    PreFilter,
    PreFilterResult,
    PreScore,
    Score,
    Sign,
    TableFilter,
    TableScore,
)
from skysail.scheduler.framework.status import Code, Status

Mask = npt.NDArray[np.bool_]
T = TypeVar("T")
_REMEMBERED = 1024


def reads_of(plugin: Plugin) -> Reads:
    """What a plugin declares to read; a plugin that declares nothing may read anything."""
    reads = getattr(plugin, "reads", Reads.GLOBAL)
    return reads if isinstance(reads, Reads) else Reads.GLOBAL


def signer_of(plugin: Plugin) -> Callable[[PodInfo], Hashable]:
    """What tells which part of a pod the plugin looks at; all but its identity when the plugin does not say."""
    return plugin.sign if isinstance(plugin, Sign) else everything_but_identity


def everything_but_identity(pod: PodInfo) -> bytes:
    """Namespace, labels, annotations and spec."""
    metadata = pod.pod.metadata
    kept = ObjectMeta(namespace=metadata.namespace, labels=metadata.labels, annotations=metadata.annotations)
    return msgspec.json.encode(msgspec.structs.replace(pod.pod, metadata=kept, status=PodStatus()), order="sorted")


def idle_of(plugin: Plugin) -> Callable[[PodInfo], bool]:
    """What tells that a plugin has nothing to do for a pod; a plugin that does not say is always asked."""
    return plugin.idle if isinstance(plugin, Idle) else _never


def _never(pod: PodInfo) -> bool:
    return False


def index_of(rows: Rows) -> RowIndex:
    """The rows one by one; `rows` as plugins get it (a slice starts at 0)."""
    return np.arange(rows.stop, dtype=np.intp) if isinstance(rows, slice) else rows


class PreFilterStep:
    """A PreFilter plugin.

    Attributes:
        name: The plugin's name.
        reads: What its Filter depends on; unless that is GLOBAL, PreFilter depends on the pod's signature alone.
        plugin: The plugin.
        idle: Tells whether the plugin has nothing to do for a pod, whatever the cluster holds.
    """

    __slots__ = ("_ask", "_doing", "idle", "name", "plugin", "reads")

    def __init__(self, plugin: PreFilter) -> None:
        self.plugin = plugin
        self._ask = plugin.pre_filter
        self.idle = idle_of(plugin)
        self.name = plugin.name
        self.reads = reads_of(plugin)
        self._doing = f'running PreFilter plugin "{plugin.name}"'

    def ask(self, state: CycleState, pod: Pod, table: NodeTable) -> tuple[Status, PreFilterResult]:
        """Success, Skip or a signed refusal.

        Raises:
            PluginFailed: It raised, or answered with an error.
        """
        try:
            answer = status, narrowed = self._ask(state, pod, table)
            if narrowed is not ALL_NODES:
                _, narrowed = checked_pair(answer, PreFilterResult)
                _check_names(narrowed.node_names)
            code = status.code
        except BaseException as error:
            raise failed(self.name, self._doing, error) from error
        if code in _PRE_FILTER_CODES:
            return status, narrowed
        if status.is_rejected:
            return status.with_plugin(self.name), narrowed
        raise PluginFailed(self.name, f"{self._doing}: {status.message}")


class PreScoreStep:
    """A PreScore plugin; attributes as in `PreFilterStep`."""

    __slots__ = ("_ask", "_doing", "idle", "name", "plugin", "reads")

    def __init__(self, plugin: PreScore) -> None:
        self.plugin = plugin
        self._ask = plugin.pre_score
        self.idle = idle_of(plugin)
        self.name = plugin.name
        self.reads = reads_of(plugin)
        self._doing = f'running PreScore plugin "{plugin.name}"'

    def skips(self, state: CycleState, pod: Pod, table: NodeTable, rows: RowIndex) -> bool:
        """Run it; whether its Score is not to be asked.

        Raises:
            PluginFailed: It raised, or answered with a failure.
        """
        try:
            code = (status := self._ask(state, pod, table, rows)).code
        except BaseException as error:
            raise failed(self.name, self._doing, error) from error
        if code is Code.SKIP:
            return True
        if code is not Code.SUCCESS:
            raise PluginFailed(self.name, f"{self._doing}: {status.message}")
        return False


_PRE_FILTER_CODES = frozenset({Code.SUCCESS, Code.SKIP})


class FilterStep:
    """A Filter plugin.

    Attributes:
        name: The plugin's name.
        order: Its place among the profile's Filter plugins.
        reads: What its answer depends on.
        simple: Whether it answers for one node at a time.
    """

    __slots__ = ("_doing", "_one", "_rows", "_signatures", "_table", "name", "order", "reads", "simple")

    def __init__(self, plugin: Filter | TableFilter, order: int) -> None:
        self._table = plugin if isinstance(plugin, TableFilter) else None
        self._one = plugin if not isinstance(plugin, TableFilter) else None
        self._rows = plugin.filter_rows if isinstance(plugin, TableFilter) else None
        self._doing = f'running "{plugin.name}" filter plugin'
        self._signatures: dict[Status, Status] = {}
        self.name = plugin.name
        self.order = order
        self.reads = reads_of(plugin)
        self.simple = self._table is None

    def ask(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, passing: Mask | None = None) -> Codes:
        """Codes for these rows, statuses signed.

        Args:
            state: Of this attempt.
            pod: Under test.
            table: Where the rows are.
            rows: A slice or an index.
            passing: (n_rows,) bool: rows that matter; a simple plugin is asked about no others, and what a table plugin
                cannot answer elsewhere is no failure. None is all.

        Raises:
            PluginFailed: It raised, or answered something that is neither success nor a refusal.
        """
        if self._rows is not None:
            try:
                codes = self._rows(state, pod, table, rows)
                some_refused = bool(codes.statuses)
                if some_refused:
                    _check_length(len(codes.codes), rows)
            except BaseException as error:
                raise failed(self.name, self._doing, error) from error
            if some_refused:
                return Codes(codes.codes, self._all_signed(codes, passing))
            return codes
        assert self._one is not None
        return self._ask_each(self._one, state, pod, table, rows, passing)

    def _ask_each(
        self, plugin: Filter, state: CycleState, pod: Pod, table: NodeTable, rows: Rows, passing: Mask | None
    ) -> Codes:
        index = index_of(rows)
        codes: CodeArray = np.zeros(len(index), dtype=np.uint8)
        statuses: dict[Status, int] = {}
        places = np.flatnonzero(passing) if passing is not None else range(len(index))
        for place in places:
            info = table.infos[int(index[place])]
            if info is None:
                continue
            try:
                status = checked_status(plugin.filter(state, pod, info))
            except BaseException as error:
                raise failed(self.name, self._doing, error) from error
            if not status.is_success:
                codes[place] = statuses.setdefault(self._signed(status), len(statuses) + 1)
        return Codes(codes, tuple(statuses))

    def _all_signed(self, codes: Codes, passing: Mask | None) -> list[Status]:
        """The refusals, signed; an error is one only where some row matters."""
        signed = []
        for number, status in enumerate(codes.statuses, 1):
            if status.is_error and passing is not None and not ((codes.codes == number) & passing).any():
                signed.append(status.with_plugin(self.name))
            else:
                signed.append(self._signed(status))
        return signed

    def _signed(self, status: Status) -> Status:
        signed = self._signatures.get(status)
        if signed is None:
            if not status.is_rejected:
                raise PluginFailed(self.name, f"{self._doing}: {status.message}")
            if len(self._signatures) >= _REMEMBERED:
                self._signatures.clear()
            signed = self._signatures[status] = status.with_plugin(self.name)
        return signed

    def explain(self, state: CycleState, pod: Pod, table: NodeTable, row: int) -> Status:
        """The plugin's own words about one row, with figures where it has some."""
        if self._table is not None:
            return self._table.explain(state, pod, table, row).with_plugin(self.name)
        assert self._one is not None
        return self._one.filter(state, pod, table.info(row)).with_plugin(self.name)


class ScoreStep:
    """A Score plugin.

    Attributes:
        name: The plugin's name.
        weight: What its normalised score is multiplied with.
        reads: What its answer depends on.
        simple: Whether it answers for one node at a time.
        normalizes: Whether its scores are brought to 0..100 afterwards.
        bounded: Whether it vouches for 0..100 by itself, so that its answers need no check.
        idle: Tells whether the plugin gives every node 0 for a pod, whatever the cluster holds.
    """

    __slots__ = (
        "_doing", "_normalize", "_one", "_rows", "bounded", "idle", "name", "normalizes", "reads", "simple", "weight",
    )  # fmt: skip

    def __init__(self, plugin: Score | TableScore, weight: int) -> None:
        self._rows = plugin.score_rows if isinstance(plugin, TableScore) else None
        self._one = plugin if not isinstance(plugin, TableScore) else None
        self.idle = idle_of(plugin)
        self._normalize = plugin.normalize if isinstance(plugin, Normalize) else None
        self._doing = f'running Score plugins: plugin "{plugin.name}" failed with'
        self.name = plugin.name
        self.weight = weight
        self.reads = reads_of(plugin)
        self.simple = self._rows is None
        self.normalizes = self._normalize is not None
        self.bounded = bool(getattr(plugin, "bounded", False))

    def ask(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> ScoreArray:
        """Raw scores of these rows.

        Raises:
            PluginFailed: It raised, or answered with a failure.
        """
        doing = self._doing
        if self._rows is not None:
            try:
                scores = self._rows(state, pod, table, rows)
                return scores if self.bounded else _whole_scores(scores, rows)
            except BaseException as error:
                raise failed(self.name, doing, error) from error
        plugin, index = self._one, index_of(rows)
        assert plugin is not None
        scores = zero_scores(index)
        for place, row in enumerate(index):
            info = table.infos[int(row)]
            if info is not None:
                try:
                    score, status = plugin.score(state, pod, info)
                    if checked_status(status).is_success:
                        scores[place] = index_number(score)
                except BaseException as error:
                    raise failed(self.name, doing, error) from error
                if not status.is_success:
                    raise PluginFailed(self.name, f"{doing}: {status.message}")
        return scores

    def normalize(self, state: CycleState, raw: ScoreArray, low: int, high: int) -> ScoreArray:
        """Scores 0..100; `raw` itself when the plugin does not normalise.

        Raises:
            PluginFailed: It raised.
        """
        if self._normalize is None:
            return raw
        try:
            scores = self._normalize(state, raw, low, high)
            return scores if self.bounded else _whole_scores(scores, raw)
        except BaseException as error:
            doing = f'running Normalize on Score plugins: plugin "{self.name}" failed with'
            raise failed(self.name, doing, error) from error

    def check(self, scores: ScoreArray) -> None:
        """See that scores are in range.

        Raises:
            PluginFailed: One is not.
        """
        if self.bounded or not len(scores):
            return
        low, high = int(scores.min()), int(scores.max())
        if low < MIN_NODE_SCORE or high > MAX_NODE_SCORE:
            bad = low if low < MIN_NODE_SCORE else high
            raise PluginFailed(
                self.name,
                f'applying score defaultWeights on Score plugins: plugin "{self.name}" returns an invalid score {bad}, '
                f"it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after normalizing",
            )


def _check_names(names: object) -> None:
    if names is not None and not isinstance(names, Set):
        raise TypeError(f"answered {names!r} as the set of nodes")


def _check_length(length: int, rows: Rows | ScoreArray) -> None:
    expected = rows.stop if isinstance(rows, slice) else len(rows)
    if length != expected:
        raise ValueError(f"answered for {length} nodes, asked about {expected}")


def _whole_scores(scores: object, rows: Rows | ScoreArray) -> ScoreArray:
    """Scores, if they are one whole number for each row.

    Raises:
        TypeError: They are no whole numbers.
        ValueError: They are not as many.
    """
    if not isinstance(scores, np.ndarray) or scores.dtype.kind not in "iu" or scores.ndim != 1:
        raise TypeError(f"answered {scores!r}; an array of whole numbers is wanted")
    _check_length(len(scores), rows)
    return scores
