"""`skysail up`: a control plane and hollow nodes in one process, driven by any kubectl."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from skysail.cli.output import say

if TYPE_CHECKING:
    from skysail.cli.serving import Serving


def up(
    nodes: int = typer.Option(5, "--nodes", "-n", min=0, max=100_000, help="Hollow nodes."),
    port: int = typer.Option(6443, "--port", "-p", min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one."),
    data_dir: Path | None = typer.Option(None, "--data-dir", help="Where objects are kept; none keeps them in memory."),
    kubeconfig_out: Path | None = typer.Option(
        None, "--kubeconfig-out", help="Where the kubeconfig is written; your own is never touched."
    ),
    ready_file: Path | None = typer.Option(
        None, "--ready-file", help="Written once the kubeconfig is there and all nodes are Ready."
    ),
    foreign_kinds: bool = typer.Option(
        False, "--foreign-kinds", help="Serve the kinds of Kueue, Volcano and others that the batch engine reads."
    ),
) -> None:
    """Run API server, scheduler, controllers and hollow nodes in one process until Ctrl-C."""
    from skysail.cli.logs import log_to_stderr
    from skysail.cli.running import run
    from skysail.cli.serving import Serving

    log_to_stderr(0)
    run(lambda: _up(Serving(port=port, data_dir=data_dir), nodes, foreign_kinds, kubeconfig_out, ready_file))


async def _up(
    serving: "Serving", nodes: int, foreign_kinds: bool, kubeconfig_out: Path | None, ready_file: Path | None
) -> None:
    import asyncio
    from random import Random

    from skysail.cli.serving import default_kubeconfig, removed_at_end, serving_api, write_private
    from skysail.simulator.clock import WallClock

    async with serving_api(serving) as served:
        kubeconfig = kubeconfig_out or default_kubeconfig(served.address.port)
        with removed_at_end(ready_file, kubeconfig if kubeconfig_out is None else None):
            write_private(kubeconfig, served.kubeconfig().encode())
            say(f"export KUBECONFIG={kubeconfig.absolute()}")
            await asyncio.to_thread(_load)  # the server answers meanwhile
            from skysail.controller.lease import LeaderElection
            from skysail.simulator.cluster import LocalCluster
            from skysail.simulator.hollow import numbered_nodes

            cluster = LocalCluster(
                served.server, numbered_nodes(nodes), clock=WallClock(), rng=Random(), foreign_kinds=foreign_kinds,
                lease=LeaderElection("kube-scheduler", namespace="kube-system"),
            )  # fmt: skip
            async with cluster.running():
                await cluster.wait_nodes_ready()
                if ready_file is not None:
                    write_private(ready_file, b"ready\n")
                say(f"ready: {nodes} nodes, serving on {served.address.url}; Ctrl-C ends it")
                await asyncio.Event().wait()


def _load() -> None:
    """Import scheduler and controllers, which takes longer than starting the API server does."""
    import skysail.simulator.cluster  # noqa: F401
