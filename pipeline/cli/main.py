"""The command line: one click group; each command lives in `pipeline/cli/<name>.py` as `command`.

Commands are imported when called, so that `connect` starts without pandas or scikit-learn. A `PipelineError`
becomes one line on stderr and exit status 1; Ctrl-C exits with 130. With the environment variable NO_COLOR set (to
anything but nothing) no output has colours, as https://no-color.org asks.
"""

from __future__ import annotations

import importlib
import io
import logging
import os
import re
import signal
import sys
from types import FrameType
from typing import NoReturn, TextIO, cast

import click

from pipeline.cli._options import program_name
from pipeline.cli._output import EscapedStream, one_line
from pipeline.cli._progress import LINE, CompilingNote
from pipeline.runtime.errors import PipelineError, nearest
from pipeline.runtime.extras import explain_missing
from pipeline.runtime.version import __version__

CHOICES = r"\s*\n\t"
"""what click writes between the choices of an option that is missing"""
GROUPS = {
    "Data": {
        "ingest": "Turn logs into a dataset of decision rows.",
        "export": "Write a dataset's hands as hand histories or ACPC logs.",
        "info": "Describe a dataset, a bundle or a strategy.",
        "query": "Ask a dataset in SQL.",
        "profile": "Describe players by VPIP, PFR, aggression and the like.",
        "leaks": "List the spots in which a player loses chips.",
        "identify": "Estimate which of several agents plays under a name in logs.",
    },
    "Copy": {
        "train": "Train a copy of a player from decision rows.",
        "evaluate": "Print how close copies come to the original.",
        "report": "Write one HTML page about data, models and matches.",
    },
    "Play": {
        "match": "Play a match between agents, or score one from its logs.",
        "tournament": "Rank agents by total bankroll and instant run-off.",
        "play": "Play against an agent in the terminal.",
        "web": "Look at agents, replay hands and play in the browser.",
        "predict": "Print what agents would do in one situation.",
    },
    "Wire": {
        "connect": "Play an agent on an ACPC dealer's socket.",
        "deal": "Run an ACPC dealer.",
        "ship": "Copy a bundle with all it needs to play.",
    },
    "Theory": {
        "solve": "Solve Kuhn, Leduc, preflop or limit hold'em, or a spot.",
        "counter": "Exploit an agent or player, or measure how exploitable it is.",
    },
    "Other": {
        "demo": "Ingest, train, evaluate and play on bundled logs.",
        "cache": "Show, build or clear what is kept on this machine.",
        "show": "Show a chart, a decision's features or a hand.",
    },
}
"""the commands by what they are about, each with the sentence that `--help` has of it"""
COMMANDS = {name: text for commands in GROUPS.values() for name, text in commands.items()}


class LazyGroup(click.Group):
    """A group whose commands are imported only when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"pipeline.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return _with_quiet(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"No such command {args[0]!r}{nearest(args[0], COMMANDS)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in commands.items()])


def _be_quiet(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not LINE.quiet:  # `demo` runs commands inside a command
        LINE.quiet = True
        context.call_on_close(lambda: setattr(LINE, "quiet", False))


_QUIET = click.Option(
    ["--quiet"], is_flag=True, expose_value=False, callback=_be_quiet, help="Show no progress on stderr."
)


def _with_quiet(command: click.Command) -> click.Command:
    """Return a command that has `--quiet`, as all have `--help`; of a group each command has it."""
    for leaf in command.commands.values() if isinstance(command, click.Group) else (command,):
        if _QUIET not in leaf.params:
            leaf.params.append(_QUIET)
    return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def group() -> None:
    """Turn logs of poker agents into agents that play like them, and say how close they are.

    `pipeline COMMAND --help` describes a command.

    Example: pipeline ingest sample: --out out/rows
    """


def main(arguments: list[str] | None = None, *, command: click.Command | None = None, name: str = "") -> None:
    """Run a command, by default the group of all; turn errors a user can mend into one line and a non-zero exit."""
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names of files may be no text
    plain = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, EscapedStream(stream)) for stream in plain)
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    compiling, kernels_log = CompilingNote(), logging.getLogger("pipeline.runtime.kernels")
    kernels_log.addHandler(compiling)
    kernels_log.setLevel(logging.INFO)
    kernels_log.propagate = False  # `CompilingNote` alone writes these
    colours = False if os.environ.get("NO_COLOR") else None  # None: click decides
    if arguments is None:
        _end_at_once_while(compiling)
    try:
        (command or group).main(args=arguments, prog_name=name or program_name(), standalone_mode=False, color=colours)
    except PipelineError as error:
        _fail(str(error))
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help' for help.\n", err=True)
        # click lists choices below each other
        click.echo(f"Error: {one_line(re.sub(CHOICES, ' ', error.format_message()))}", err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _interrupted(arguments is None)
    except SystemError as error:
        if not _is_interruption(error):
            raise
        _interrupted(arguments is None)
    except ModuleNotFoundError as error:
        advice = explain_missing(error.name)
        if advice is None:
            raise
        _fail(advice)
    except BrokenPipeError:
        # Python flushes stdout once more when it ends: into the void, or that would fail again with a traceback
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        _fail(
            "not enough memory: give it less at a time (a smaller file, fewer rows or hands), or a machine with "
            "more (what was there before is unharmed)"
        )
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        _fail((error.strerror or str(error)).lower() + where)
    finally:
        sys.stdout, sys.stderr = plain
        kernels_log.removeHandler(compiling)
        compiling.close()


def _fail(sentence: str) -> NoReturn:
    """Print an error and end with 1."""
    click.echo(f"error: {one_line(sentence)}", err=True)
    sys.exit(1)


def _open_missing_streams() -> None:
    """Put the null device where the program was started without input, output or errors (`2>&-` in a shell)."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            try:
                os.fstat(descriptor)  # something else may have got the free number
            except OSError:
                os.dup2(opened, descriptor)
            setattr(sys, name, os.fdopen(opened, "w" if descriptor else "r", encoding="utf-8"))


def _end_at_once_while(compiling: CompilingNote) -> None:
    """Let Ctrl-C end the program while it compiles: numba now and then swallows an exception raised inside it."""

    def interrupted(number: int, frame: FrameType | None) -> None:
        if compiling.active:
            os.write(2, b"interrupted\n")
            os._exit(130)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupted)


def _is_interruption(error: BaseException | None) -> bool:
    """Return whether Ctrl-C is behind an error: compiled code that it reaches in mid-call reports a SystemError."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _interrupted(whole_process: bool) -> NoReturn:
    """End with 130; a process of our own ends at once, without waiting for threads that still compile or count."""
    click.echo("interrupted", err=True)
    if whole_process:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130)
    sys.exit(130)
