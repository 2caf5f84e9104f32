"""`skysail explain`: run the real scheduling code over recorded scenarios and print each decision as data."""

import sys
from pathlib import Path

import typer


def explain(
    file: Path = typer.Option(..., "--file", "-f", help="Scenario file, plain or gzip'd JSON.", dir_okay=False),
    output: str = typer.Option("json", "--output", "-o", help="Only `json`: one line a scenario."),
    check: bool = typer.Option(False, "--check", help="Compare with the recorded decisions; exit 1 on a difference."),
    only_plugins: str = typer.Option("", "--only-plugins", help="Compare and print only these plugins, as A,B."),
) -> None:
    """Decide recorded scenarios with the real scheduling code; print, or check, one JSON line each."""
    import msgspec

    from skysail.api.errors import ConfigError
    from skysail.scheduler.explain import compare, explain_scenario, load_scenarios, missing_plugins

    if output != "json":
        raise ConfigError(f"unknown output {output!r}; only json is known", path="--output")
    wanted = frozenset(name for name in only_plugins.split(",") if name) or None
    scenarios = load_scenarios(file)
    if missing := missing_plugins():
        sys.stderr.write(f"skysail: plugins of the default profile that do not exist yet: {', '.join(missing)}\n")
    differing = 0
    for scenario in scenarios:
        decision = explain_scenario(scenario, wanted)
        if not check:
            sys.stdout.write(msgspec.json.encode({"id": scenario["id"], "decision": decision}).decode() + "\n")
        elif differences := compare(scenario.get("expected", {}), decision, wanted):
            differing += 1
            line = msgspec.json.encode({"id": scenario["id"], "differences": differences})
            sys.stdout.write(line.decode() + "\n")
    if check:
        sys.stderr.write(f"{len(scenarios) - differing} of {len(scenarios)} scenarios agree\n")
        raise typer.Exit(1 if differing else 0)
