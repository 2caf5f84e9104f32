"""The `skysail` command's entry point and its table of verbs."""

import sys

import typer

from skysail.api.errors import SkysailError
from skysail.cli import apiserver, batch, controller_manager, crd, demo, explain, scheduler, up, why
from skysail.cli.output import OutputLost, drop_unwritten, open_missing

app = typer.Typer(
    name="skysail",
    help="Kubernetes scheduling and control loops in Python.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("up")(up.up)
app.command("demo")(demo.demo)
app.command("apiserver")(apiserver.apiserver)
app.command("explain")(explain.explain)
app.command("scheduler")(scheduler.scheduler)
app.command("simulate")(why.simulate)
app.add_typer(batch.app)
app.add_typer(controller_manager.app)
app.add_typer(crd.app)
app.add_typer(why.app)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    """Kubernetes scheduling and control loops in Python."""
    if version:
        from skysail import __version__

        typer.echo(f"skysail {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def main() -> None:
    """Run the command; what a user did wrong ends in one line on stderr and exit code 2, never in a traceback."""
    open_missing()
    try:
        app()
    except OutputLost as error:
        drop_unwritten()
        if not error.unread:
            sys.stderr.write(f"skysail: {error}\n")
        raise SystemExit(1) from None
    except SkysailError as error:
        sys.stderr.write(f"skysail: {error}\n")
        raise SystemExit(2) from None
