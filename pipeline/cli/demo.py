"""`demo`: the whole story on bundled data, each step shown as the command that a user would type."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

import click

from pipeline.cli._options import PATH, program_name
from pipeline.cli._output import echo_drawing, one_line
from pipeline.runtime.bundled import name_path
from pipeline.runtime.files import replacing, write_text

AGENT = "teacher"
ALGORITHMS = ("l-bfgs", "sgd-l1", "rprop")
RULES = ("@equity", "@bearl", "@call", "@random")


class Size(NamedTuple):
    """Amount of work of the demo."""

    fresh_hands: int
    """made by the teacher on the spot, besides the bundled sample"""
    match_hands: int
    tournament_hands: int
    iterations: int
    strength: bool
    """whether the default pattern is trained too and meets its teacher: both need the strength tables, which are
    built once (a minute or so)"""


SIZES = {
    "small": Size(0, 4_000, 1_000, 15, False),
    "full": Size(200_000, 100_000, 20_000, 40, True),
}


@contextmanager
def _step(numbers: Iterator[int], title: str) -> Iterator[None]:
    """Print a step's number and title, and its seconds when it is over."""
    echo_drawing(click.style(f"\n{next(numbers)}. {title}", bold=True))
    began = time.monotonic()
    yield
    click.echo(f"  ({time.monotonic() - began:.1f} s)")


def _run(context: click.Context, *words: str | Path | int) -> None:
    """Show a command as a user would type it, and run it in this process."""
    arguments = [str(word) for word in words]
    echo_drawing(click.style(f"$ {program_name()} {one_line(shlex.join(arguments))}", fg="cyan"))
    context.find_root().command.main(args=arguments, prog_name=program_name(), standalone_mode=False)


def _play_match(context: click.Context, bundle: Path, opponent: str, chosen: Size, out: Path) -> Path:
    """Play a match, write the output of `match --json` to a file for the page, and print who won."""
    from pipeline.agents.names import plain_name

    path = out / f"match-{plain_name(opponent)}.json"
    arguments = ["match", str(bundle), opponent, "--hands", str(chosen.match_hands), "--seed", "1", "--json"]
    echo_drawing(
        click.style(f"$ {program_name()} {one_line(f'{shlex.join(arguments)} > {shlex.quote(str(path))}')}", fg="cyan")
    )
    with replacing(path) as beside, beside.open("w", encoding="utf-8") as file, redirect_stdout(file):
        context.find_root().command.main(args=arguments, prog_name=program_name(), standalone_mode=False)
    result = json.loads(path.read_text(encoding="utf-8"))
    won = f"{result['mbb_per_hand']:+.1f} ± {result['ci95']:.1f} mbb/h"
    click.echo(f"{result['a']} against {result['b']}: {won} over {result['hands']:,} hands")
    return path


@click.command()
@click.option(
    "--size", type=click.Choice(list(SIZES)), default="full", show_default=True, help="small: under a minute."
)
@click.option(
    "--sample",
    type=PATH,
    default="sample:",
    show_default=True,
    help="The logs to learn from; by default the package's.",
)
@click.option("--out", type=PATH, default=Path("out/demo"), show_default=True, help="Folder for all that is made.")
@click.pass_context
def command(context: click.Context, size: str, sample: Path, out: Path) -> None:
    """Ingest, train, evaluate and play on bundled data, saying what is done.

    Example: pipeline demo --size small
    """
    began = time.monotonic()
    step, chosen = partial(_step, count(1)), SIZES[size]
    rows, page = out / "rows", out / "report.html"
    thesis = [out / "thesis" / name for name in ALGORITHMS]
    models = [out / "imitator", *thesis] if chosen.strength else thesis
    logs: list[Path] = [sample]
    truth = sorted(sample.glob("*.probs.parquet"))

    if chosen.fresh_hands:
        with step("The teacher plays: more logs than the bundled sample holds"):
            _run(context, "match", "@teacher", "--sample", out / "logs", "--hands", chosen.fresh_hands, "--seed", 7)
            logs.append(out / "logs")
            truth += sorted((out / "logs").glob("*.probs.parquet"))
    truth_words = [word for path in truth for word in ("--probabilities", name_path(path))]
    with step("Logs become rows, one for each decision, every line checked"):
        _run(context, "ingest", *map(name_path, logs), "--out", rows, *([] if chosen.strength else ["--no-strength"]))
    with step("A starting-hand chart is counted"):
        _run(context, "show", "chart", "--data", rows, "--agent", AGENT, "--out", out / "chart.svg")
    train = ("train", "--data", rows, "--agent", AGENT, "--quiet")
    with step("The thesis's columns, learned by its three algorithms street by street"):
        _run(
            context,
            *(*train, "--pattern", "thesis", "--max-iterations", chosen.iterations, "--out", out / "thesis"),
            *(word for algorithm in ALGORITHMS for word in ("--algorithm", algorithm)),
        )
    if chosen.strength:
        with step("The default: hand strength with the betting, several models joined"):
            _run(context, *train, "--out", models[0])
    with step("How wrong are they, and how much of it is the teacher's own dice (the floor)?"):
        _run(context, "evaluate", "--data", rows, *models, *truth_words)
    opponents = (["@teacher"] if chosen.strength else []) + list(RULES)
    with step("The imitator plays"):
        matches = [_play_match(context, models[0], opponent, chosen, out) for opponent in opponents[:2]]
    with step("A run-off, as in the competition"):
        _run(
            context,
            *("tournament", str(models[0]), *opponents),
            *("--hands", str(chosen.tournament_hands), "--out", str(out / "tournament.csv")),
        )
    with step("One page that shows it all"):
        match_words = [word for path in matches for word in ("--match", path)]
        results = ("--table", out / "tournament.csv")
        _run(context, "report", "--data", rows, *models, *truth_words, *match_words, *results, "--out", page)
    _close(sample, out, models[0], page, time.monotonic() - began)


def _close(sample: Path, out: Path, best: Path, page: Path, seconds: float) -> None:
    """Print where things are and what to type next; leave a record."""
    write_text(out / "demo.json", json.dumps({"bundle": str(best), "page": str(page), "seconds": round(seconds, 1)}))
    echo_drawing(click.style(f"\nDone in {seconds:.0f} s.", bold=True))
    click.echo(f"\nLook at\n  {page}  the page: open it in a browser")
    click.echo(f"  {out / 'chart.svg'}  the teacher's starting hands\n\nType next:")
    for line, why in (
        (f"web {best} @teacher --data {out / 'rows'}", "look at it, replay hands and play in the browser"),
        (f"play {best}", "sit down against the copy in the terminal"),
        (
            f"show hand {name_path(sample / 'teacher.call.1.0.log')} 17 {best}",
            "one hand, and what the copy would have done",
        ),
        (f"ship {best} --out {out}/bot.zip", "the copy as one file"),
        ("ingest YOUR/LOGS --out out/rows", "your own logs"),
        ("train --data out/rows --agent NAME --out out/NAME", "and a copy of who played in them"),
    ):
        click.echo(f"  {program_name()} {line}    # {why}")
