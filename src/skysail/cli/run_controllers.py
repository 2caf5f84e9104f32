"""The main program of controllers one has written: a cluster, signals, leader election, health and metrics.

    if __name__ == "__main__":
        run_controllers(TtlCleaner())

runs them until a signal ends it, with the options that `python my_controller.py --help` shows.
"""

import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skysail.controller.controller import Controller


def run_controllers(*controllers: "Controller", component: str = "") -> None:
    """Run controllers against a cluster until a signal ends it; reads the command line.

    Args:
        controllers: Yours.
        component: Names the process, and its Lease; the first controller's name by default.
    """
    name = component or controllers[0].display_name()
    program = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @program.command(help=f"Run {', '.join(each.display_name() for each in controllers)}.")
    def command(
        kubeconfig: str = typer.Option("", "--kubeconfig", help="How to reach the cluster; else as kubectl does."),
        context: str = typer.Option("", "--context", help="A context of the kubeconfig; else its current one."),
        leader_elect: bool = typer.Option(False, "--leader-elect", help="Work only while holding a Lease."),
        lease_namespace: str = typer.Option("default", "--lease-namespace", help="Where that Lease is."),
        workers: int = typer.Option(0, "--workers", min=0, help="Keys at a time; 0 is each controller's own number."),
        health_port: int = typer.Option(0, "--health-port", min=0, max=65535, help="/livez, /readyz, /metrics."),
        v: int = typer.Option(2, "-v", min=0, max=10, help="Log level: 0 warnings, 2 info, 4 debug."),
    ) -> None:
        from skysail.cli.logs import log_to_stderr
        from skysail.cli.running import run

        log_to_stderr(v)
        election = (name, lease_namespace) if leader_elect else None
        run(
            lambda: run_manager(
                controllers, name, kubeconfig, election, health_port, context=context, workers=workers or None
            )
        )

    _run_program(program)


def _run_program(program: typer.Typer) -> None:
    from skysail.api.errors import SkysailError

    try:
        program()
    except SkysailError as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(2) from None


async def run_manager(
    controllers: "Sequence[Controller]",
    name: str,
    kubeconfig: str,
    election: tuple[str, str] | None,
    health_port: int,
    *,
    context: str = "",
    workers: int | None = None,
) -> None:
    """Run controllers until cancelled, and stop them in order then.

    Args:
        controllers: Not yet part of a manager.
        name: Of the process, in user agents and Events.
        kubeconfig: How to reach the cluster; empty means as kubectl does.
        election: The Lease to work under, and its namespace; None to work at once.
        health_port: Of health and metrics; 0 for none.
        context: Of the kubeconfig.
        workers: Keys at a time; each controller's own number by default.
    """
    import asyncio
    import os
    import socket
    from contextlib import AsyncExitStack
    from random import Random

    from prometheus_client import CollectorRegistry

    from skysail.client.api_client import ApiClient
    from skysail.client.http import HttpTransport
    from skysail.client.locate import locate
    from skysail.controller.lease import LeaderElection
    from skysail.controller.manager import Manager, ManagerSettings
    from skysail.controller.serving import ServingOptions, serving_manager
    from skysail.simulator.clock import WallClock

    clock, rng = WallClock(), Random()
    transport = HttpTransport(locate(kubeconfig, context=context), clock=clock)
    settings = ManagerSettings(
        component=name, identity=f"{socket.gethostname()}_{os.getpid()}_{rng.getrandbits(32):08x}"
    )
    manager = Manager(
        ApiClient(transport, user_agent=name, clock=clock, rng=rng),
        clock=clock,
        rng=rng,
        settings=settings,
        leader_election=LeaderElection(election[0], namespace=election[1]) if election else None,
        registry=CollectorRegistry(),
    )
    for controller in controllers:
        manager.add(controller, workers=workers)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(transport.close)
        if health_port:
            url = await stack.enter_async_context(serving_manager(manager, ServingOptions(port=health_port)))
            sys.stderr.write(f"{name}: health and metrics on {url}\n")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(manager.run(), name=name)
            try:
                await asyncio.wait((task,))
            except asyncio.CancelledError:
                manager.stop()
                await asyncio.wait((task,))
