"""What a real kube-scheduler scored, out of its log at `--vmodule=schedule_one=10`, held against ours."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from skysail.api.raw import Raw

_LINE = re.compile(
    r"(?:Plugin scored node for pod|Calculated node's final score for pod)\" pod=\"([^\"]+)\""
    r"(?: plugin=\"([^\"]+)\")? node=\"([^\"]+)\" score=(-?\d+)"
)
TOTAL = "total"

Scores = dict[str, dict[str, int]]
"""By plugin, or `TOTAL`, and node: weighted."""


def scores_of(log: Path) -> dict[str, Scores]:
    """By pod, the scores of its last attempt that scored."""
    found: dict[str, Scores] = defaultdict(lambda: defaultdict(dict))
    with log.open(errors="replace") as lines:
        for line in lines:
            if match := _LINE.search(line):
                pod, plugin, node, score = match.groups()
                found[pod][plugin or TOTAL][node] = int(score)
    return found


def our_scores(decision: Raw) -> Scores:
    """The same of a decision of ours; plugins that were skipped are left out."""
    feasible = decision["feasible"]
    scores = {TOTAL: dict(zip(feasible, decision["totals"], strict=True))}
    for plugin, entry in decision["scores"].items():
        if not entry.get("skipped"):
            given = entry.get("normalized", entry["raw"])
            scores[plugin] = {node: entry["weight"] * each for node, each in zip(feasible, given, strict=True)}
    return scores


def differing(real: Mapping[str, Mapping[str, int]], ours: Scores) -> Iterable[str]:
    """What differs, a line for each plugin; a plugin that one side leaves out gave nothing."""
    for plugin in sorted(real.keys() | ours.keys()):
        theirs, mine = real.get(plugin, {}), ours.get(plugin, {})
        wrong = {
            node: (theirs.get(node, 0), mine.get(node, 0))
            for node in sorted({*theirs, *mine})
            if theirs.get(node, 0) != mine.get(node, 0)
        }
        if wrong:
            yield f"{plugin} (real, ours) {dict(list(wrong.items())[:4])}"
