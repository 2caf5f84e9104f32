from pathlib import Path

import pytest

from skysail.api.errors import ConfigError
from skysail.simulator.traces import GPU, read_openb_nodes, read_openb_pods

OPENB = Path(__file__).resolve().parents[1] / "golden" / "openb"


def test_openb_nodes_have_the_published_totals() -> None:
    nodes = read_openb_nodes(OPENB / "openb_node_list_gpu_node.csv")
    assert len(nodes) == 1213
    assert sum(int(node["status"]["allocatable"][GPU]) for node in nodes) == 6212


def test_openb_pods_ask_for_whole_gpus_as_requests_and_limits() -> None:
    pods = read_openb_pods(OPENB / "openb_pod_list_default.csv")
    resources = [pod["spec"]["containers"][0]["resources"] for pod in pods]
    assert len(pods) == 8152
    assert sum(1 for r in resources if GPU not in r["requests"]) == 1088
    assert all(r["requests"].get(GPU) == r.get("limits", {}).get(GPU) for r in resources)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    file = tmp_path / "nodes.csv"
    file.write_text("sn,cpu_milli,memory_mib,model\n")
    with pytest.raises(ConfigError, match=r"nodes\.csv: gpu: no such column"):
        read_openb_nodes(file)


def test_a_bad_cell_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "pods.csv"
    file.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_spec\np0,100,1,0,\np1,many,1,0,\n")
    with pytest.raises(ConfigError, match=r"pods\.csv: line 3, cpu_milli: 'many' is no whole number"):
        read_openb_pods(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_openb_nodes(tmp_path / "absent.csv")
