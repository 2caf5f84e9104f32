"""What the demo prints: one JSON line, or tables for people."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING

import msgspec

from skysail.api.core import Pod
from skysail.api.quantity import parse_quantity
from skysail.api.resources import pod_requests
from skysail.cli.demo_run import POOL, DemoResult, is_running
from skysail.cli.output import say
from skysail.simulator.settling import pending_reason

if TYPE_CHECKING:
    from rich.table import Table

_PIPED_WIDTH = 4096


def summary_line(result: DemoResult) -> str:
    """The result as one line of JSON."""
    running = sum(1 for pod in result.pods if is_running(pod))
    bound = sum(1 for pod in result.pods if pod.spec.node_name)
    summary = {
        "nodes": len(result.nodes),
        "pods": {"total": len(result.pods), "running": running, "pending": len(result.pods) - running},
        "pending": [{"pod": pod.key, "reason": pending_reason(pod)} for pod in result.pods if not is_running(pod)],
        "seconds": round(result.seconds, 3),
        "scheduled_per_second": round(bound / result.seconds, 1),
    }
    return msgspec.json.encode(summary).decode()


def print_table(result: DemoResult) -> None:
    """Print what ran where, what is pending and why, and how full the pools are."""
    from rich.console import Console

    terminal = sys.stdout.isatty()
    printed = StringIO()
    # whole lines for grep where nobody's window folds them
    console = Console(file=printed, force_terminal=terminal, width=None if terminal else _PIPED_WIDTH)
    for table in (_workloads(result), _pools(result), _pending(result)):
        console.print(table)
    running = sum(1 for pod in result.pods if is_running(pod))
    say("\n".join(line.rstrip() for line in printed.getvalue().splitlines()))
    say(
        f"{running} of {len(result.pods)} pods run on {len(result.nodes)} nodes, "
        f"the rest is explained; {result.seconds:.1f} s."
    )


def _table(title: str, *columns: str) -> "Table":
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _workload(pod: Pod) -> str:
    """What a pod belongs to: its owner without the template hash, or its name without the number."""
    owner = pod.metadata.owner_references[0].name if pod.metadata.owner_references else pod.name
    return f"{pod.namespace}/{owner.rsplit('-', 1)[0]}"


def _workloads(result: DemoResult) -> "Table":
    pool_of = {node.name: node.metadata.labels.get(POOL, "") for node in result.nodes}
    groups: dict[str, list[Pod]] = defaultdict(list)
    for pod in result.pods:
        if is_running(pod):
            groups[_workload(pod)].append(pod)
    table = _table("What ran where", "WORKLOAD", "PODS", "NODES", "POOLS")
    for name in sorted(groups):
        nodes = {pod.spec.node_name for pod in groups[name]}
        pools = Counter(pool_of[pod.spec.node_name] for pod in groups[name])
        table.add_row(
            name, str(len(groups[name])), str(len(nodes)), ", ".join(f"{pools[p]} {p}" for p in sorted(pools))
        )
    return table


def _pools(result: DemoResult) -> "Table":
    table = _table("\nNode use", "POOL", "NODES", "CPU", "MEMORY", "PODS")
    for pool, nodes in _by_pool(result):
        names = {node for node, _ in nodes}
        pods = [pod for pod in result.pods if pod.spec.node_name in names]
        cpu = sum(pod_requests(pod).get("cpu", 0) for pod in pods)
        memory = sum(pod_requests(pod).get("memory", 0) for pod in pods)
        cpu_room = sum(parse_quantity(room["cpu"]).milli_value() for _, room in nodes)
        memory_room = sum(parse_quantity(room["memory"]).value() for _, room in nodes)
        table.add_row(
            pool,
            str(len(nodes)),
            f"{100 * cpu / cpu_room:.0f} %",
            f"{100 * memory / memory_room:.0f} %",
            str(len(pods)),
        )
    return table


def _by_pool(result: DemoResult) -> Iterator[tuple[str, list[tuple[str, dict[str, str]]]]]:
    pools: dict[str, list[tuple[str, dict[str, str]]]] = defaultdict(list)
    for node in result.nodes:
        pools[node.metadata.labels.get(POOL, "")].append((node.name, dict(node.status.allocatable)))
    yield from sorted(pools.items())


def _pending(result: DemoResult) -> "Table":
    table = _table("\nPending, and why", "POD", "REASON")
    for pod in result.pods:
        if not is_running(pod):
            table.add_row(pod.key, pending_reason(pod))
    return table
