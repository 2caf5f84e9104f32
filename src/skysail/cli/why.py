"""`skysail why job` and `skysail simulate`: questions about a cluster, read-only, answered by the production engine."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from skysail.batch.session import Configuration
    from skysail.diagnosis.jobs import JobDiagnosis
    from skysail.diagnosis.snapshot import Snapshot
    from skysail.diagnosis.what_if import JobSimulation

app = typer.Typer(name="why", help="Why something waits, and what would change that.", no_args_is_help=True)

KUBECONFIG = typer.Option("", "--kubeconfig", help="How to reach the cluster; else as kubectl does.")
SCHEDULER = typer.Option("sky-scheduler", "--scheduler-name", help="Whose pods the batch engine schedules.")
CONFIG = typer.Option(None, "--config", help="The batch engine's configuration, when it has one.")
OUTPUT = typer.Option("text", "--output", "-o", help="text or json.")


@app.callback()
def why() -> None:
    """Why something waits, and what would change that."""


@app.command("job")
def why_a_job(
    name: str = typer.Argument(help="A gang, or an object whose pods are one: NAME or KIND/NAME."),
    namespace: str = typer.Option("default", "--namespace", "-n", help="Where it is."),
    kubeconfig: str = KUBECONFIG,
    scheduler_name: str = SCHEDULER,
    config: Path | None = CONFIG,
    output: str = OUTPUT,
) -> None:
    """Say why a job waits: the code, the figures, its queues, who is before it, and what would wake it."""
    from skysail.api.errors import ConfigError
    from skysail.cli.output import say
    from skysail.diagnosis.jobs import why_job
    from skysail.diagnosis.unknown import why_unknown

    _check_output(output)
    kind, _, short = name.rpartition("/")
    asked = f"{kind}/{namespace}/{short}" if kind else f"{namespace}/{short}"
    snapshot = _take(kubeconfig, scheduler_name)
    found = why_job(snapshot, asked, _configuration(config))
    if found is None:
        raise ConfigError(f"{why_unknown(snapshot, asked)}", path="NAME")
    say(_json(found) if output == "json" else "\n".join(job_lines(found)))


def simulate(
    file: list[Path] = typer.Option(..., "--filename", "-f", help="Manifests; may be given again."),
    kubeconfig: str = KUBECONFIG,
    scheduler_name: str = SCHEDULER,
    config: Path | None = CONFIG,
    output: str = OUTPUT,
) -> None:
    """Say what would happen if these manifests were applied: where pods would run, whom that evicts, or why not.

    Exit code 1 when a job would have to wait.
    """
    from skysail.cli.manifests import read_manifests
    from skysail.cli.output import say
    from skysail.diagnosis.what_if import simulate as simulate_jobs

    _check_output(output)
    manifests = [document for each in file for document in read_manifests(each)]
    answers = simulate_jobs(_take(kubeconfig, scheduler_name), manifests, _configuration(config))
    for each in answers:
        say(_json(each) if output == "json" else "\n".join(simulation_lines(each)))
    raise typer.Exit(0 if all(each.answer.fits for each in answers) else 1)


def _check_output(output: str) -> None:
    from skysail.api.errors import ConfigError

    if output not in ("text", "json"):
        raise ConfigError(f"unknown output {output!r}; known are text, json", path="--output")


def _configuration(file: Path | None) -> "Configuration | None":
    from skysail.cli.batch import configuration_source

    return None if file is None else configuration_source(file)()


def _take(kubeconfig: str, scheduler_name: str) -> "Snapshot":
    from random import Random

    from skysail.cli.running import run
    from skysail.cli.taking import take_snapshot
    from skysail.client.api_client import ApiClient
    from skysail.client.http import HttpTransport
    from skysail.client.locate import locate
    from skysail.simulator.clock import WallClock

    async def take() -> "Snapshot":
        clock = WallClock()
        transport = HttpTransport(locate(kubeconfig), clock=clock)
        try:
            client = ApiClient(transport, user_agent="skysail-why", clock=clock, rng=Random())
            return await take_snapshot(client, clock, scheduler_name)
        finally:
            await transport.close()

    found = run(take)
    if found is None:
        raise typer.Exit(130)
    return found


def _json(answer: object) -> str:
    import msgspec

    return msgspec.json.encode(answer).decode()


def job_lines(found: "JobDiagnosis") -> list[str]:
    """A job's answer for people."""
    lines = [f"{found.name}: {found.code or found.message or 'does not wait'}"]
    lines += [f"  {found.message}"] if found.code else []
    members = ", ".join(f"{count} {state.lower()}" for state, count in found.members.items())
    lines.append(f"  members: {members or 'none'}; {found.min_member} needed")
    lines += [f"  lacks {each}" for each in found.missing]
    if found.nodes:
        total = sorted(found.nodes.items(), key=lambda item: (-item[1], item[0]))
        lines.append("  nodes: " + "; ".join(f"{count} {reason}" for reason, count in total))
    lines += [f"  would run: {pod} on {node}" for pod, node in sorted(found.placement.items())]
    lines += [f"  would evict: {pod}" for pod in found.victims]
    for queue in found.queues:
        lines.append(f"  queue {queue.name}: {_standing(queue.held, queue.entitlement, queue.limit)}")
    if found.ahead and found.code:
        more = f" and {len(found.ahead) - 5} more" if len(found.ahead) > 5 else ""
        lines.append(f"  before it wait: {', '.join(found.ahead[:5])}{more}")
    lines += [f"  would help: {each}" for each in found.helps]
    if found.next_events:
        lines.append(f"  tried again at: {', '.join(found.next_events)}")
    return [*lines, *(f"  note: {each}" for each in found.problems)]


def _standing(held: "dict[str, int] | object", entitlement: object, limit: object) -> str:
    from skysail.batch.model.resources import amount_text

    assert isinstance(held, dict)
    assert isinstance(entitlement, dict)
    assert isinstance(limit, dict)
    parts = []
    for name in sorted({*held, *entitlement, *limit}):
        text = f"{name} {amount_text(name, held.get(name, 0))} held"
        if name in entitlement:
            text += f" of {amount_text(name, entitlement[name])} entitled"
        if name in limit:
            text += f", at most {amount_text(name, limit[name])}"
        parts.append(text)
    return "; ".join(parts) or "holds nothing"


def simulation_lines(found: "JobSimulation") -> list[str]:
    """A simulated job's answer for people."""
    answer = found.answer
    outcome = answer.outcome
    verdict = (
        "would start" if answer.fits else f"would wait: {outcome.code.value if outcome is not None else 'refused'}"
    )
    lines = [f"{found.name}: {verdict}"]
    if outcome is not None and not answer.fits:
        lines.append(f"  {outcome.message}")
    lines += [f"  would help: {each}" for each in found.helps]
    lines += [f"  {pod} on {node}" for pod, node in sorted(answer.placement.items())]
    lines += [f"  evicts {pod}" for pod in answer.victims]
    if answer.largest is not None:
        lines.append(f"  the largest that would be taken: {answer.largest} pods")
    return lines
