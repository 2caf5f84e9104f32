"""`skysail demo`: the main job at a glance - a cluster, a web shop, a batch, and three pods that cannot run."""

import typer

from skysail.cli.output import say


def demo(
    show: str = typer.Argument("shop", help="shop: pods one at a time; batch: gangs, queues, spot."),
    nodes: int = typer.Option(50, "--nodes", "-n", min=1, max=100_000, help="Hollow nodes."),
    output: str = typer.Option("table", "--output", "-o", help="table or json."),
    seed: int | None = typer.Option(None, "--seed", help="Repeat the same ties and names."),
) -> None:
    """Start a cluster, run a web shop and a batch on it, and say what runs where and why the rest waits."""
    from random import Random

    from skysail.api.errors import ConfigError
    from skysail.cli.demo_report import print_table, summary_line
    from skysail.cli.demo_run import run_demo
    from skysail.cli.logs import log_to_stderr
    from skysail.cli.running import run

    if output not in ("table", "json"):
        raise ConfigError(f"unknown output {output!r}; known are table, json", path="--output")
    if show not in ("shop", "batch"):
        raise ConfigError(f"unknown demo {show!r}; known are shop, batch", path="SHOW")
    if show == "batch":
        from skysail.cli.demo_batch import demo_batch

        raise typer.Exit(0 if demo_batch(seed, output) else 1)
    log_to_stderr(0)
    result = run(lambda: run_demo(nodes, Random(seed), quiet=output == "json"))
    if result is None:
        raise typer.Exit(130)
    if output == "json":
        say(summary_line(result))
    else:
        print_table(result)
    raise typer.Exit(0 if result.explained else 1)
