"""What a pod's claims need of all nodes at once: `PodClaims.find` in table form.

A volume is mostly usable in one place: on one node, in one zone. So each volume is turned into the rows where it can be
used by one look-up, and handed out to those that still lack one: a walk over volumes, not over volumes times nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from skysail.api.affinity import NodeSelector
from skysail.api.nodeselector import CompiledTerm, compile_node_selector
from skysail.api.storage import CSIStorageCapacity, PersistentVolume, StorageClass
from skysail.api.volumes import admits_labels
from skysail.scheduler.cache.columns import ABSENT
from skysail.scheduler.cache.matrices import RowIndex
from skysail.scheduler.cache.table import NO_ROWS, NodeTable
from skysail.scheduler.framework.steps import Mask
from skysail.scheduler.plugins.csi_translation import migration_of
from skysail.scheduler.plugins.node_matching import match_selector
from skysail.scheduler.plugins.volume_claims import Choice, Conflict, PodClaims, Source, VolumeError, topology_selector

Bits = npt.NDArray[np.uint8]
_NOTHING = -1
_BIND, _SPACE = np.uint8(Conflict.BIND), np.uint8(Conflict.SPACE)
UNREADABLE: Final = 1 << len(Conflict)
"""Of a row: a volume cannot be read as that node sees it. No other bit counts then."""


class Places:
    """Where volumes can be used: rows of one table, as it is now."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._everywhere: RowIndex = np.arange(table.size, dtype=np.intp)
        self._by_value: dict[str, dict[str, RowIndex]] = {}

    def rows(self, volume: PersistentVolume) -> RowIndex:
        """The rows where a volume can be used, ascending."""
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return self._everywhere
        return self._selected(affinity.required)

    def _selected(self, required: NodeSelector) -> RowIndex:
        terms = required.node_selector_terms
        if len(terms) == 1 and len(terms[0].match_expressions) == 1 and not terms[0].match_fields:
            expression = terms[0].match_expressions[0]
            if expression.operator == "In" and len(expression.values) == 1:
                return self._labelled(expression.key).get(expression.values[0], NO_ROWS)
        mask = np.zeros(self._table.size, dtype=np.bool_)
        for term in compile_node_selector(required).terms:
            mask |= self._term(term)
        return np.flatnonzero(mask)

    def _term(self, term: CompiledTerm) -> Mask:
        """A volume's affinity does not know the node's name: tests on fields hold."""
        if term.errors or term.labels is None:
            return np.full(self._table.size, not term.errors, dtype=np.bool_)
        return match_selector(term.labels, self._table, self._table.all_rows)

    def _labelled(self, key: str) -> dict[str, RowIndex]:
        """Rows by the value of a label."""
        found = self._by_value.get(key)
        if found is None:
            column = self._table.label(key)
            codes = column.codes[: self._table.size]
            order: RowIndex = np.argsort(codes, kind="stable")
            distinct, starts = np.unique(codes[order], return_index=True)
            ends = [*starts[1:], len(order)]
            found = self._by_value[key] = {
                column.values[int(code)]: order[start:end]
                for code, start, end in zip(distinct, starts, ends[: len(starts)], strict=True)
                if code != ABSENT
            }
        return found


@dataclass(frozen=True, slots=True)
class RowConflicts:
    """The answer for all rows.

    Attributes:
        bits: (size,) uint8: for each row, the `Conflict`s as bits, or `UNREADABLE`; dead rows hold anything.
        error: Why a volume cannot be read somewhere; empty when all can.
    """

    bits: Bits
    error: str = ""


def conflicts(claims: PodClaims, table: NodeTable) -> RowConflicts:
    """What stands against each row.

    Cost: A few array operations for each claim and each of its candidates.
    """
    places = Places(table)
    bound = _bound_conflicts(claims, table, places)
    bits = bound.bits
    elsewhere = _selected_elsewhere(claims, table)
    bits[elsewhere] |= _BIND
    lacking = [(claims.sources[claim.metadata.name], ~elsewhere) for claim, _ in claims.selected]
    for choice, found in zip(claims.choices, _hand_out(claims.choices, table, places), strict=True):
        lacking.append((claims.sources[choice.claim.metadata.name], (found == _NOTHING) & ~elsewhere))
    failed = np.zeros(table.size, dtype=np.bool_)
    for source, rows in lacking:
        _provision(source, rows, failed, bits, table)
    bits[bits >= UNREADABLE] = UNREADABLE
    return bound


def _bound_conflicts(claims: PodClaims, table: NodeTable, places: Places) -> RowConflicts:
    """The first bound claim whose volume does not suit the row tells."""
    bits: Bits = np.zeros(table.size, dtype=np.uint8)
    error = ""
    for volume in claims.bound:
        if volume is None:
            bits[bits == 0] = Conflict.MISSING
            break
        outside = np.ones(table.size, dtype=np.bool_)
        if migration_of(volume.spec) is None:
            outside[places.rows(volume)] = False
        else:
            for row, info in enumerate(table.infos[: table.size]):
                if info is not None and bits[row] == 0:
                    try:
                        seen = claims.reader.as_on(volume, info.name)
                    except VolumeError as unreadable:
                        bits[row], error = UNREADABLE, error or str(unreadable)
                    else:
                        outside[row] = not admits_labels(seen, info.node.metadata.labels)
        bits[outside & (bits == 0)] = Conflict.NODE
    return RowConflicts(bits, error)


def _selected_elsewhere(claims: PodClaims, table: NodeTable) -> Mask:
    """Rows that are not the node selected for some claim before."""
    elsewhere = np.zeros(table.size, dtype=np.bool_)
    for _, name in claims.selected:
        row = table.rows.get(name)
        here = np.zeros(table.size, dtype=np.bool_)
        if row is not None:
            here[row] = True
        elsewhere |= ~here
    return elsewhere


def _hand_out(choices: Sequence[Choice], table: NodeTable, places: Places) -> npt.NDArray[np.int64]:
    """(n_choices, size) int64: which volume each claim gets at each row, -1 for none."""
    numbers: dict[str, int] = {}
    given = np.full((len(choices), table.size), _NOTHING, dtype=np.int64)
    for index, choice in enumerate(choices):
        own, left = given[index], table.size
        for volume in (choice.promised,) if choice.promised is not None else choice.free:
            number = numbers.setdefault(volume.metadata.name, len(numbers))
            rows = places.rows(volume)
            if len(rows) <= 1 and not index:  # a volume of one node: most local ones, thousands of them
                left -= _give(own, rows, number)
                if left:
                    continue
                break
            rows = rows[own[rows] == _NOTHING]
            if index:
                rows = rows[(given[:index, rows] != number).all(axis=0)]
            own[rows] = number
            left -= len(rows)
            if not left:
                break
    return given


def _give(own: npt.NDArray[np.int64], rows: RowIndex, number: int) -> int:
    """Give the volume of one place to its row, if that still lacks one; how many rows got it."""
    if not len(rows) or own[rows[0]] != _NOTHING:
        return 0
    own[rows[0]] = number
    return 1


def _provision(source: Source, rows: Mask, failed: Mask, bits: Bits, table: NodeTable) -> None:
    """Where a claim needs a new volume: note the rows where none can be made. The first failure of a row tells."""
    needed = rows & ~failed
    if not needed.any():
        return
    unable = needed if not source.can_provision else needed & ~_within(source.storage_class, table)
    bits[unable] |= _BIND
    failed |= unable
    if source.capacities is not None:
        short = needed & ~unable & ~_reachable(source.capacities, table)
        bits[short] |= _SPACE
        failed |= short


def _within(storage_class: StorageClass, table: NodeTable) -> Mask:
    """Where a class makes volumes."""
    if not storage_class.allowed_topologies:
        return np.ones(table.size, dtype=np.bool_)
    within = np.zeros(table.size, dtype=np.bool_)
    for term in storage_class.allowed_topologies:
        if not term.match_label_expressions:
            continue
        admitted = np.ones(table.size, dtype=np.bool_)
        for each in term.match_label_expressions:
            column = table.label(each.key)
            codes = column.codes[: table.size]
            admitted &= np.isin(codes, [column.code_of(value) for value in each.values]) & (codes != ABSENT)
        within |= admitted
    return within


def _reachable(capacities: Sequence[CSIStorageCapacity], table: NodeTable) -> Mask:
    """From where storage with enough room can be used."""
    reachable = np.zeros(table.size, dtype=np.bool_)
    for capacity in capacities:
        if capacity.node_topology is not None:
            try:
                reachable |= match_selector(topology_selector(capacity), table, table.all_rows)
            except ValueError:
                continue
    return reachable
