"""The commands of `kiln`, by name."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from .streams import OutputError, open_streams

_COMMANDS: Final = {
    "serve": "serve:serve",
    "compile": "compile:compile_graph",
    "compile-all": "compile_all.command:compile_folder",
    "run": "run:run",
    "tune": "tune:tune",
    "validate": "validate:validate",
    "bench": "bench:bench",
    "explain": "explain:explain",
    "report": "report_page:report",
    "convert": "convert:convert",
    "targets": "list_targets:targets",
    "doctor": "doctor:doctor",
    "mcp": "mcp:mcp",
}
"""The module and the function of each command."""


class _Commands(TyperGroup):
    """Loads each command at first use: most need the whole SDK, `kiln serve` none of it."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            for name in _COMMANDS:  # Load all: suggestions for an unknown command come from loaded ones.
                self.get_command(ctx, name)
        elif cmd_name not in self.commands:
            self.add_command(_loaded(cmd_name))
        return self.commands.get(cmd_name)


def _loaded(name: str) -> Any:
    module, _, function = _COMMANDS[name].partition(":")
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    alone.command(name)(getattr(import_module(f".{module}", __package__), function))
    return get_command(alone)


app = typer.Typer(
    name="kiln",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Compile tensor graphs and run them.",
    epilog="Exit codes: 0 done; 1 the graph was refused or not compiled; 2 wrong usage; 3 no service, "
    "or it refuses the key; 4 a check of compile-all failed; 5 a program without a valid signature; 6 the inputs or "
    "this machine do not fit the program; 130 interrupted.",
)


def _print_version(asked: bool) -> None:
    if asked:
        from ..transport import sdk_version

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
    open_streams()
    try:
        app()
    except OutputError as error:
        from .report import unwritten

        sys.exit(unwritten(error))
