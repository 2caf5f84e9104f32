"""`skysail explain`: run the real scheduling code over recorded scenarios, or a live cluster, and print decisions."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from skysail.cli.output import say

if TYPE_CHECKING:
    from skysail.api.raw import Raw
    from skysail.scheduler.live_extenders import LiveExtenders


def explain(
    file: Path | None = typer.Option(None, "--file", "-f", help="Scenario file, plain or gzip'd JSON.", dir_okay=False),
    pod: str = typer.Option("", "--pod", help="A pod of a live cluster, as namespace/name; nothing is written."),
    kubeconfig: str = typer.Option("", "--kubeconfig", help="With --pod: how to reach the cluster; else as kubectl."),
    config: Path | None = typer.Option(
        None,
        "--config",
        help="With --pod: the KubeSchedulerConfiguration with its profile; extenders are asked, never to bind.",
    ),
    plugin: list[str] = typer.Option([], "--plugin", help="With --pod: a plugin of your own, as module:Class."),
    feature_gates: str = typer.Option("", "--feature-gates", help="With --pod: Name=true,Other=false."),
    output: str = typer.Option("json", "--output", "-o", help="Only `json`: one line a scenario."),
    check: bool = typer.Option(False, "--check", help="Compare with the recorded decisions; exit 1 on a difference."),
    only_plugins: str = typer.Option("", "--only-plugins", help="Compare and print only these plugins, as A,B."),
) -> None:
    """Decide scenarios, or a live cluster's pod, with the real scheduling code; print, or check, one JSON line each."""
    import msgspec

    from skysail.api.errors import ConfigError
    from skysail.cli.working_directory import search_working_directory
    from skysail.scheduler.explain import compare, explain_scenario, load_scenarios
    from skysail.scheduler.profiles import plugin_factories

    if output != "json":
        raise ConfigError(f"unknown output {output!r}; only json is known", path="--output")
    if (file is None) == (not pod):
        raise ConfigError("give either a scenario file or a pod of a live cluster", path="--file, --pod")
    if file is not None and (config is not None or feature_gates or plugin):
        raise ConfigError("a scenario brings its own; with --pod only", path="--config, --feature-gates, --plugin")
    search_working_directory()
    factories = plugin_factories(plugin) if file is None else None
    wanted = frozenset(name for name in only_plugins.split(",") if name) or None
    scenarios = load_scenarios(file) if file is not None else [_live(pod, kubeconfig, config, feature_gates)]
    differing = 0
    for scenario in scenarios:
        decision = explain_scenario(scenario, wanted, _extenders(scenario) if file is None else None, factories)
        if not check:
            say(msgspec.json.encode({"id": scenario["id"], "decision": decision}).decode())
        elif differences := compare(scenario.get("expected", {}), decision, wanted):
            differing += 1
            line = msgspec.json.encode({"id": scenario["id"], "differences": differences})
            say(line.decode())
    if check:
        sys.stderr.write(f"{len(scenarios) - differing} of {len(scenarios)} scenarios agree\n")
        raise typer.Exit(1 if differing else 0)


def _extenders(scenario: "Raw") -> "LiveExtenders | None":
    """Who asks the extenders of a live scenario's configuration; None when it has none."""
    from skysail.scheduler.scenario import configured_extenders

    extenders = configured_extenders(scenario.get("config"))
    if not extenders:
        return None
    from skysail.scheduler.live_extenders import LiveExtenders
    from skysail.simulator.clock import WallClock

    return LiveExtenders(extenders, [*scenario["objects"], scenario["pod"]], WallClock())


def _live(pod: str, kubeconfig: str, config: Path | None, gates: str) -> "Raw":
    from skysail.api.errors import ConfigError
    from skysail.cli.running import run
    from skysail.cli.scheduler import parse_feature_gates
    from skysail.scheduler.config.strict_yaml import load_yaml

    chosen = parse_feature_gates(gates)
    namespace, _, name = pod.rpartition("/")
    scenario = run(lambda: _read(namespace or "default", name, kubeconfig))
    if scenario is None:
        raise typer.Exit(130)
    if config is not None:
        try:
            document = load_yaml(config.read_text(), str(config))
        except OSError as error:
            raise ConfigError(f"cannot be read: {error}", file=str(config), path="--config") from error
        scenario["config"] = document
    scenario["feature_gates"] = chosen
    return scenario


async def _read(namespace: str, name: str, kubeconfig: str) -> "Raw":
    from random import Random

    from skysail.client.api_client import ApiClient
    from skysail.client.http import HttpTransport
    from skysail.client.locate import locate
    from skysail.scheduler.live import live_scenario
    from skysail.simulator.clock import WallClock

    clock = WallClock()
    transport = HttpTransport(locate(kubeconfig), clock=clock)
    try:
        client = ApiClient(transport, user_agent="skysail-explain", clock=clock, rng=Random())
        return await live_scenario(client, namespace, name)
    finally:
        await transport.close()
