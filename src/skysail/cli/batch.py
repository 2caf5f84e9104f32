"""`skysail batch`: the batch engine against a cluster, and scenarios replayed in virtual time."""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from skysail.batch.engine import Cycle
    from skysail.batch.session import Configuration

app = typer.Typer(name="batch", help="Schedule jobs, not pods.", invoke_without_command=True)

NAME = "skysail-batch"


@app.callback()
def batch(
    context: typer.Context,
    config: Path | None = typer.Option(None, "--config", help="Actions and plugins; read again when it changes."),
    scheduler_name: str = typer.Option("sky-scheduler", "--scheduler-name", help="Whose pods are scheduled."),
    kubeconfig: str = typer.Option("", "--kubeconfig", help="How to reach the cluster; else as kubectl does."),
    leader_elect: bool = typer.Option(False, "--leader-elect", help="Work only while holding a Lease."),
    lease_namespace: str = typer.Option("kube-system", "--lease-namespace", help="Where that Lease is."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Decide, print a line a cycle, write nothing."),
    health_port: int = typer.Option(0, "--health-port", min=0, max=65535, help="/livez, /readyz, /metrics."),
    health_address: str = typer.Option("127.0.0.1", "--health-address", help="Where they answer."),
    token_file: Path | None = typer.Option(None, "--token-file", help="The bearer token callers of /metrics show."),
    v: int = typer.Option(2, "-v", min=0, max=10, help="Log level: 0 warnings, 2 info, 4 debug."),
) -> None:
    """Run the batch engine against a cluster until a signal ends it."""
    if context.invoked_subcommand is not None:
        return
    from skysail.cli.logs import log_to_stderr
    from skysail.cli.running import run
    from skysail.controller.serving import ServingOptions

    log_to_stderr(v)
    configuration = configuration_source(config)
    token = _read_token(token_file)
    serving = ServingOptions(address=health_address, port=health_port, token=token) if health_port else None
    election = lease_namespace if leader_elect and not dry_run else ""
    run(lambda: _run(configuration, scheduler_name, kubeconfig, election, serving, dry_run))


def _read_token(file: Path | None) -> str:
    from skysail.api.errors import ConfigError

    try:
        return file.read_text().strip() if file is not None else ""
    except OSError as error:
        raise ConfigError(error.strerror or "cannot be read", file=str(file), path="--token-file") from error


def configuration_source(file: Path | None) -> "Callable[[], Configuration]":
    """What gives the configuration at the start of each cycle: a changed file is taken, a bad one is refused.

    Raises:
        ConfigError: The file cannot be used at the start.
    """
    from skysail.batch.config import default_configuration
    from skysail.batch.config_file import ConfigurationFile

    if file is not None:
        return ConfigurationFile(file)
    fixed = default_configuration()
    return lambda: fixed


async def _run(
    configuration: "Callable[[], Configuration]",
    scheduler_name: str,
    kubeconfig: str,
    lease_namespace: str,
    serving: object,
    dry_run: bool,
) -> None:
    import asyncio
    import os
    import socket
    from contextlib import AsyncExitStack
    from random import Random

    from prometheus_client import CollectorRegistry

    from skysail.batch.app import BatchOptions
    from skysail.batch.controllers.process import BatchProcess
    from skysail.cli.collecting import spare_what_is_there
    from skysail.client.api_client import ApiClient
    from skysail.client.http import HttpTransport
    from skysail.client.locate import locate
    from skysail.controller.leader_elector import LeaderElector
    from skysail.controller.lease import LeaderElection
    from skysail.controller.serving import ServingOptions, serving_manager
    from skysail.simulator.clock import WallClock
    from skysail.testing.batch_replay.report import cycle_line

    clock, rng = WallClock(), Random()
    transport = HttpTransport(locate(kubeconfig), clock=clock)
    client = ApiClient(transport, user_agent=NAME, clock=clock, rng=rng)
    elector = None
    if lease_namespace:
        identity = f"{socket.gethostname()}_{os.getpid()}_{rng.getrandbits(32):08x}"
        elector = LeaderElector(client, LeaderElection(NAME, namespace=lease_namespace), identity, clock=clock, rng=rng)
    options = BatchOptions(scheduler_name=scheduler_name, dry_run=dry_run, seed=rng.getrandbits(32))
    processes: list[BatchProcess] = []

    def explain(cycle: "Cycle") -> None:
        """In a dry run: a line of JSON for each cycle, as a replay prints it."""
        if dry_run and processes:
            _print_line(cycle_line(cycle.number, cycle.at, processes[0].scheduler.world, cycle, 0))

    process = BatchProcess(
        client,
        configuration,
        clock=clock,
        rng=rng,
        options=options,
        elector=elector,
        registry=CollectorRegistry(),
        observe=explain,
    )
    processes.append(process)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(transport.close)
        if isinstance(serving, ServingOptions):
            url = await stack.enter_async_context(serving_manager(process.manager, serving))
            sys.stderr.write(f"{NAME}: health and metrics on {url}\n")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(process.run(), name=NAME)
            sparing = group.create_task(spare_what_is_there(process.scheduler.wait_synced()), name="collector")
            try:
                await asyncio.wait((task,))
            except asyncio.CancelledError:
                process.stop()
                task.cancel()
                await asyncio.wait((task,))
            finally:
                sparing.cancel()


@app.command("replay")
def replay(
    scenario: Path = typer.Argument(help="The scenario, YAML."),
    seed: int | None = typer.Option(None, "--seed", help="Of names, uids and ties; else the scenario's."),
    output: str = typer.Option("json", "--output", "-o", help="Only `json`: one line a cycle, and a final one."),
) -> None:
    """Play a scenario in virtual time: the production engine, the embedded server, hollow nodes."""
    from skysail.api.errors import ConfigError
    from skysail.simulator.clock import run_virtual
    from skysail.testing.batch_replay.player import play
    from skysail.testing.batch_replay.scenario import read_scenario

    if output != "json":
        raise ConfigError(f"unknown output {output!r}; only json is known", path="--output")
    logging.basicConfig(level=logging.CRITICAL)
    logging.getLogger("skysail.batch").setLevel(logging.ERROR)  # bugs of the engine, which are what one looks for
    read = read_scenario(scenario)
    chosen = read.seed if seed is None else seed
    run_virtual(lambda clock: play(read, clock, chosen, _print_line))


def _print_line(line: dict[str, object]) -> None:
    import msgspec

    from skysail.cli.output import say

    say(msgspec.json.encode(line).decode())
