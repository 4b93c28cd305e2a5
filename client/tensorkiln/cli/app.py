"""The commands under their names."""

from __future__ import annotations

from typing import Annotated

import typer

from ..transport import sdk_version
from .compile import compile_graph
from .compile_all.command import compile_folder
from .doctor import doctor
from .run import run
from .serve import serve
from .validate import validate

app = typer.Typer(
    name="kiln",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Compile tensor graphs and run them.",
    epilog="Exit codes: 0 done; 1 the graph was refused or not compiled; 2 wrong usage; 3 no service, "
    "or it refuses the key; 4 a policy of compile-all; 5 a program that is not signed; 6 the inputs or this machine do "
    "not fit the program; 130 interrupted.",
)
app.command("serve")(serve)
app.command("compile")(compile_graph)
app.command("compile-all")(compile_folder)
app.command("run")(run)
app.command("validate")(validate)
app.command("doctor")(doctor)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"kiln {sdk_version()}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Compile tensor graphs and run them."""


def run_command() -> None:
    """Run the command that the arguments of this process name."""
    app()
