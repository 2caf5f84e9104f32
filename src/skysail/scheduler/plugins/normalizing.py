"""Bringing raw scores to 0..100."""

import numpy as np

from skysail.scheduler.framework.codes import MAX_NODE_SCORE, ScoreArray


def default_normalize(raw: ScoreArray, high: int, *, reverse: bool = False) -> ScoreArray:
    """Scale 0..high to 0..100, or to 100..0 when fewer is better; raw scores are not negative.

    Source: pkg/scheduler/framework/plugins/helper/normalize_score.go, v1.36.
    """
    if high <= 0:
        return np.full_like(raw, MAX_NODE_SCORE) if reverse else raw
    scaled: ScoreArray = raw * MAX_NODE_SCORE // high
    return MAX_NODE_SCORE - scaled if reverse else scaled
