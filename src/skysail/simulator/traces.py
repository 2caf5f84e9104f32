"""Traces of real clusters, read into API objects.

OpenB is Alibaba's production GPU cluster (1,213 GPU nodes, 8,152 pods), published as two CSV files. Here a GPU is a
whole `nvidia.com/gpu`: a pod that shares one asks for one. The trace's times are not used.

Source: alibaba/clusterdata `cluster-trace-gpu-v2023`.
"""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path

from skysail.api.errors import ConfigError
from skysail.api.raw import Raw

GPU = "nvidia.com/gpu"
MODEL_LABEL = "nvidia.com/gpu.product"
_PODS_PER_NODE = 110


def read_openb_nodes(file: Path) -> list[Raw]:
    """The nodes of an OpenB node list, in file order: CPU, memory, GPUs, and the card's model as a label.

    Raises:
        ConfigError: A column is missing or a cell is no number; names file, line and column.
    """
    return [_node(row, number) for row, number in _rows(file, ("sn", "cpu_milli", "memory_mib", "gpu", "model"))]


def read_openb_pods(file: Path, namespace: str = "default") -> list[Raw]:
    """The pods of an OpenB pod list, in file order.

    Raises:
        ConfigError: A column is missing or a cell is no number; names file, line and column.
    """
    columns = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_spec")
    return [_pod(row, number, namespace) for row, number in _rows(file, columns)]


Row = dict[str, str]
Number = Callable[[str], int]


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[tuple[Row, Number]]:
    """Each row with a reader of its numbers that can say where it stands."""
    try:
        handle = file.open(newline="", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(file)) from error
    with handle:
        reader = csv.DictReader(handle)
        if missing := set(columns) - set(reader.fieldnames or ()):
            raise ConfigError(f"no such column; needed are {', '.join(columns)}", file=str(file), path=min(missing))
        for row in reader:
            yield row, _number_reader(row, file, reader.line_num)


def _number_reader(row: Row, file: Path, line: int) -> Number:
    def number(column: str) -> int:
        text = row[column]
        if not (text or "").isdecimal():
            raise ConfigError(f"{text!r} is no whole number", file=str(file), path=f"line {line}, {column}")
        return int(text)

    return number


def _node(row: Row, number: Number) -> Raw:
    name = row["sn"]
    labels = {"kubernetes.io/hostname": name} | ({MODEL_LABEL: row["model"]} if row["model"] else {})
    room = {
        "cpu": f"{number('cpu_milli')}m",
        "memory": f"{number('memory_mib')}Mi",
        "pods": str(_PODS_PER_NODE),
        GPU: str(number("gpu")),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": room, "allocatable": room},
    }


def _pod(row: Row, number: Number, namespace: str) -> Raw:
    requests = {"cpu": f"{number('cpu_milli')}m", "memory": f"{number('memory_mib')}Mi"}
    resources: Raw = {"requests": requests}
    if gpus := number("num_gpu"):
        requests[GPU] = str(gpus)
        resources["limits"] = {GPU: str(gpus)}
    spec: Raw = {"containers": [{"name": "main", "image": "openb/workload", "resources": resources}]}
    if models := [model for model in row["gpu_spec"].split("|") if model]:
        term = {"matchExpressions": [{"key": MODEL_LABEL, "operator": "In", "values": models}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        spec["affinity"] = {"nodeAffinity": required}
    metadata = {"name": row["name"], "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
