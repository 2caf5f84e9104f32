"""`skysail controller-manager`: the built-in controllers against a cluster, and replays of recorded transcripts."""

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from skysail.cli.logs import log_to_stderr
from skysail.cli.output import say

if TYPE_CHECKING:
    from skysail.api.raw import Raw

NAME = "skysail-controller-manager"

app = typer.Typer(name="controller-manager", help="Run the built-in controllers.", invoke_without_command=True)


@app.callback()
def controller_manager(
    context: typer.Context,
    controllers: str = typer.Option(
        "*", "--controllers", help="Which to run: `*` is all, `name` is one, `-name` is all but that one; by commas."
    ),
    kubeconfig: str = typer.Option("", "--kubeconfig", help="How to reach the cluster; else as kubectl does."),
    leader_elect: bool = typer.Option(False, "--leader-elect", help="Work only while holding a Lease."),
    lease_namespace: str = typer.Option("kube-system", "--lease-namespace", help="Where that Lease is."),
    health_port: int = typer.Option(0, "--health-port", min=0, max=65535, help="/livez, /readyz, /metrics."),
    v: int = typer.Option(2, "-v", min=0, max=10, help="Log level: 0 warnings, 2 info, 4 debug."),
) -> None:
    """Run the built-in controllers against a cluster until a signal ends it."""
    if context.invoked_subcommand is not None:
        return
    from skysail.cli.run_controllers import run_manager
    from skysail.cli.running import run
    from skysail.controllers.registry import CONTROLLERS, select_controllers

    names = select_controllers(part.strip() for part in controllers.split(",") if part.strip())
    log_to_stderr(v)
    election = (NAME, lease_namespace) if leader_elect else None
    run(lambda: run_manager([CONTROLLERS[each]() for each in names], NAME, kubeconfig, election, health_port))


@app.command("replay")
def replay(
    transcript: Path = typer.Argument(help="A recorded transcript; its recorded states may be missing."),
    output: str = typer.Option("json", "--output", "-o", help="Only `json`: one line a step."),
    check: bool = typer.Option(False, "--check", help="Compare with the recorded states; exit 1 on a difference."),
    seed: int = typer.Option(0, "--seed", help="Of names, uids and ties."),
) -> None:
    """Play a transcript's actions against the embedded server in virtual time; print, or check, what is then there."""
    import msgspec

    from skysail.api.errors import ConfigError
    from skysail.simulator.clock import run_virtual
    from skysail.testing.transcripts.comparing import compare
    from skysail.testing.transcripts.player import replay as play

    if output != "json":
        raise ConfigError(f"unknown output {output!r}; only json is known", path="--output")
    logging.basicConfig(level=logging.CRITICAL)
    recording = _read(transcript)
    seen = run_virtual(lambda clock: play(recording, clock, seed))
    if not check:
        for step in seen:
            say(msgspec.json.encode(step).decode())
        return
    if any("state" not in step for step in recording["steps"]):
        raise ConfigError("there are no recorded states to compare with", file=str(transcript), path="steps[].state")
    differences = list(compare(recording["steps"], seen))
    for difference in differences:
        say(difference)
    sys.stderr.write(f"{recording['scenario']}: {len(differences)} differences in {len(seen)} steps\n")
    raise typer.Exit(1 if differences else 0)


def _read(path: Path) -> "Raw":
    """A transcript, with what must be in it.

    Raises:
        ConfigError: The file cannot be read, or is no transcript.
    """
    import msgspec

    from skysail.api.errors import ConfigError

    try:
        found: Raw = msgspec.json.decode(path.read_bytes(), type=dict)
    except OSError as error:
        raise ConfigError(error.strerror or "cannot be read", file=str(path)) from error
    except msgspec.DecodeError as error:  # a ValidationError too
        raise ConfigError(f"is no transcript: {error}", file=str(path)) from error
    for key in ("scenario", "controllers", "steps"):
        if key not in found:
            raise ConfigError("is no transcript: this field is missing", file=str(path), path=key)
    return found
