"""Prefers nodes that already hold the pod's images; an image held by many nodes counts more, so that none gets crowded.

Source: pkg/scheduler/framework/plugins/imagelocality, v1.36.
"""

from collections.abc import Hashable

import numpy as np

from skysail.api.core import Pod
from skysail.scheduler.cache.matrices import Rows
from skysail.scheduler.cache.pod_info import PodInfo
from skysail.scheduler.cache.table import NodeTable
from skysail.scheduler.framework.codes import MAX_NODE_SCORE, Reads, ScoreArray, zero_scores
from skysail.scheduler.framework.cycle_state import CycleState
from skysail.scheduler.framework.handle import Handle
from skysail.scheduler.plugins.args import PluginArgs

MEBIBYTE = 1024 * 1024
MIN_THRESHOLD = 23 * MEBIBYTE
"""Images that add up to less score nothing."""
MAX_THRESHOLD = 1000 * MEBIBYTE
"""For each container: images that add up to more score no better."""


class ImageLocality:
    """The plugin. An image counts with its size times the share of nodes that hold it."""

    name = "ImageLocality"
    reads = Reads.NODES
    bounded = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        pass

    def sign(self, pod: PodInfo) -> Hashable:
        """The images, with repeats, and the number of containers."""
        spec = pod.pod.spec
        if len(spec.containers) == 1 and not spec.init_containers and not spec.volumes:
            return spec.containers[0].image
        return tuple(images(pod.pod)), len(spec.containers) + len(spec.init_containers)

    def score_rows(self, state: CycleState, pod: Pod, table: NodeTable, rows: Rows) -> ScoreArray:
        """0..100 by the sum over images."""
        nodes = len(table)
        total = None
        for image in images(pod):
            column = table.image(image)
            if column.count:
                worth = int(column.size_bytes * (column.count / nodes))
                part = column.present[rows] * np.int64(worth)
                total = part if total is None else total + part
        if total is None:
            return zero_scores(rows)
        ceiling = MAX_THRESHOLD * (len(pod.spec.containers) + len(pod.spec.init_containers))
        scores: ScoreArray = np.minimum(np.maximum(total, MIN_THRESHOLD), ceiling)
        return MAX_NODE_SCORE * (scores - MIN_THRESHOLD) // (ceiling - MIN_THRESHOLD)


def images(pod: Pod) -> list[str]:
    """Every image the pod needs, once for each use, under the names that nodes report."""
    spec = pod.spec
    names = [container.image for container in (*spec.init_containers, *spec.containers)]
    names += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return [normalized_image_name(name) for name in names]


def normalized_image_name(name: str) -> str:
    """The name with a tag: `:latest` when it has neither tag nor digest."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
