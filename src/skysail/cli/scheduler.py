"""`skysail scheduler`: a second scheduler, or the only one, against any cluster."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from random import Random

    from skysail.api.ports import Clock, Transport
    from skysail.client.api_client import ApiClient
    from skysail.controller.leader_elector import LeaderElector
    from skysail.scheduler.app import Scheduler
    from skysail.scheduler.config.resolve import ResolvedConfiguration
    from skysail.scheduler.profiles import PluginFactories
    from skysail.scheduler.serving import ServingOptions


def scheduler(
    config: Path | None = typer.Option(None, "--config", help="A KubeSchedulerConfiguration; none is the default one."),
    kubeconfig: str = typer.Option("", "--kubeconfig", help="How to reach the cluster; else as kubectl does."),
    leader_elect: bool | None = typer.Option(
        None, "--leader-elect/--no-leader-elect", help="Schedule only while holding the lease; else as configured."
    ),
    plugin: list[str] = typer.Option([], "--plugin", help="A plugin as module:Class; may be given again."),
    feature_gates: str = typer.Option("", "--feature-gates", help="Name=true,Other=false."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Decide and explain, but write nothing to the cluster."),
    write_config_to: Path | None = typer.Option(
        None, "--write-config-to", help="Write the configuration with all defaults to a file, and end."
    ),
    bind_address: str = typer.Option("127.0.0.1", "--bind-address", help="Where health, metrics, debug answer."),
    secure_port: int = typer.Option(10259, "--secure-port", min=0, max=65535, help="0 answers nowhere."),
    tls_cert_file: Path | None = typer.Option(None, "--tls-cert-file", help="Certificate, PEM."),
    tls_private_key_file: Path | None = typer.Option(None, "--tls-private-key-file", help="Its key, PEM."),
    token_file: Path | None = typer.Option(None, "--token-file", help="The bearer token that callers must show."),
    v: int = typer.Option(0, "--v", "-v", min=0, max=10, help="Log level: 0 warnings, 2 info, 4 debug."),
) -> None:
    """Schedule pods as kube-scheduler does, with its configuration files and better explanations."""
    from skysail.cli.running import run
    from skysail.cli.working_directory import search_working_directory
    from skysail.scheduler.config.writing import to_yaml
    from skysail.scheduler.profiles import plugin_factories
    from skysail.scheduler.serving import ServingOptions

    _set_up_logs(v)
    search_working_directory()
    factories = plugin_factories(plugin)
    configuration = _configuration(config, feature_gates, factories)
    if write_config_to is not None:
        _write(write_config_to, to_yaml(configuration))
        return
    for profile in configuration.profiles:
        if profile.left_out:
            names = ", ".join(profile.left_out)
            sys.stderr.write(f"skysail: profile {profile.scheduler_name} runs without plugins not built yet: {names}\n")
    token = _read(token_file, "--token-file").strip() if token_file is not None else ""
    serving = ServingOptions(bind_address, secure_port, tls_cert_file, tls_private_key_file, token)
    elects = configuration.source.leader_election.leader_elect if leader_elect is None else leader_elect
    kubeconfig = kubeconfig or configuration.source.client_connection.kubeconfig
    run(lambda: _run(configuration, kubeconfig, factories, serving if secure_port else None, elects, dry_run))


def _configuration(file: Path | None, gates_text: str, factories: "PluginFactories") -> "ResolvedConfiguration":
    """The configuration as it will run, the lease included."""
    import dataclasses

    from msgspec.structs import replace

    from skysail.scheduler.config.resolve import load_configuration
    from skysail.scheduler.framework.feature_gates import feature_gates
    from skysail.scheduler.profiles import extension_points

    text = _read(file, "--config") if file is not None else None
    gates = feature_gates(parse_feature_gates(gates_text))
    found = load_configuration(text, gates, extension_points(factories), file=str(file or ""))
    election = replace(found.source.leader_election, resource_name=lease_name(found))
    return dataclasses.replace(found, source=replace(found.source, leader_election=election))


def parse_feature_gates(text: str) -> dict[str, bool]:
    """Read `Name=true,Other=false`.

    A name that changes nothing here is warned of: it may be another component's gate, or a slip of the pen.

    Raises:
        ConfigError: An entry is neither.

    >>> parse_feature_gates("GangScheduling=true, DRAExtendedResource=False")
    {'GangScheduling': True, 'DRAExtendedResource': False}
    """
    import sys
    from difflib import get_close_matches

    from skysail.api.errors import ConfigError
    from skysail.scheduler.framework.feature_gates import DEFAULT_GATES

    gates: dict[str, bool] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = entry.partition("=")
        if not name or value.lower() not in ("true", "false"):
            raise ConfigError(f"{entry!r}: Name=true or Name=false is wanted", path="--feature-gates")
        gates[name] = value.lower() == "true"
        if name not in DEFAULT_GATES:
            close = get_close_matches(name, DEFAULT_GATES, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            sys.stderr.write(f"skysail: warning: --feature-gates: {name} changes nothing in this scheduler{hint}\n")
    return gates


def _read(file: Path, option: str) -> str:
    from skysail.api.errors import ConfigError

    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"cannot be read: {reason}", file=str(file), path=option) from error


def _write(file: Path, text: str) -> None:
    from skysail.api.errors import ConfigError

    try:
        file.write_text(text)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(file), path="--write-config-to") from error


def _set_up_logs(verbosity: int) -> None:
    from skysail.cli.logs import log_to_stderr

    log_to_stderr(verbosity)


async def _run(
    configuration: "ResolvedConfiguration",
    kubeconfig: str,
    factories: "PluginFactories",
    serving: "ServingOptions | None",
    elects: bool,
    dry_run: bool,
) -> None:
    from contextlib import AsyncExitStack
    from random import Random

    from skysail.client.api_client import ApiClient
    from skysail.client.http import HttpTransport
    from skysail.client.locate import locate
    from skysail.scheduler.app import Scheduler, SchedulerOptions
    from skysail.scheduler.serving import serving_scheduler
    from skysail.simulator.clock import WallClock

    clock, rng = WallClock(), Random()
    transport = _limited(HttpTransport(locate(kubeconfig), clock=clock), configuration, clock)
    client = ApiClient(transport, user_agent="skysail-scheduler", clock=clock, rng=rng)
    elector = None
    if elects and not dry_run:
        elector = _elector(client, configuration, clock, rng)
    options = SchedulerOptions(dry_run=dry_run)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(transport.close)
        scheduler = Scheduler(
            client, configuration, clock=clock, rng=rng, factories=factories, options=options, elector=elector
        )
        if serving is not None:
            url = await stack.enter_async_context(serving_scheduler(scheduler, serving))
            sys.stderr.write(f"skysail: scheduler answers on {url}\n")
        if elector is not None:
            lease = f"{elector.election.namespace}/{elector.election.name}"
            sys.stderr.write(f"skysail: schedules while it holds the lease {lease}\n")
        await _run_until_stopped(scheduler)


def _limited(transport: "Transport", configuration: "ResolvedConfiguration", clock: "Clock") -> "Transport":
    from skysail.scheduler.limited import LimitedTransport

    connection = configuration.source.client_connection
    if connection.qps <= 0:
        return transport
    return LimitedTransport(transport, clock, connection.qps, connection.burst or max(1, round(connection.qps)))


async def _run_until_stopped(scheduler: "Scheduler") -> None:
    """Run it; when this task is cancelled (a signal), stop it in order."""
    import asyncio
    import signal

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR2, _report_differences, scheduler)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(scheduler.run(), name="scheduler")
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            scheduler.stop()
            await asyncio.wait((task,))


def _report_differences(scheduler: "Scheduler") -> None:
    """SIGUSR2: say where cache and informers disagree."""
    differences = scheduler.compare_caches()
    found = "; ".join(f"{name}: {', '.join(names)}" for name, names in differences.as_raw().items() if names)
    sys.stderr.write(f"skysail: cache and informers {'disagree: ' + found if found else 'agree'}\n")


def lease_name(configuration: "ResolvedConfiguration") -> str:
    """The lease to elect by: as configured, but never that of the cluster's own scheduler beside it.

    Differs: upstream's default, `kube-scheduler`, is taken only with a profile `default-scheduler`. Without one the
    lease is called as the first profile: a second scheduler would wait for ever, or, the lease once taken, keep the
    first one from scheduling.
    """
    names = [profile.scheduler_name for profile in configuration.profiles]
    configured = configuration.source.leader_election.resource_name
    return names[0] if configured == "kube-scheduler" and "default-scheduler" not in names else configured


def _elector(
    client: "ApiClient", configuration: "ResolvedConfiguration", clock: "Clock", rng: "Random"
) -> "LeaderElector":
    import os
    import socket

    from skysail.controller.leader_elector import LeaderElector
    from skysail.controller.lease import LeaderElection
    from skysail.scheduler.config.durations import parse_duration

    source = configuration.source.leader_election
    election = LeaderElection(
        name=source.resource_name,
        namespace=source.resource_namespace,
        lease_seconds=parse_duration(source.lease_duration),
        renew_deadline_seconds=parse_duration(source.renew_deadline),
        retry_seconds=parse_duration(source.retry_period),
    )
    identity = f"{socket.gethostname()}_{os.getpid()}_{rng.getrandbits(32):08x}"
    return LeaderElector(client, election, identity, clock=clock, rng=rng)
