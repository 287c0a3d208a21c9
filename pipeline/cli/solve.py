"""`solve`: solve Kuhn, Leduc, preflop or limit hold'em, or a spot of no-limit hold'em."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipeline.cli._options import (
    DEALS_RANGE,
    FILE,
    FOLDER,
    HOLDEM,
    STEPS,
    Finite,
    add_options,
    cluster_option,
    connected,
    game_option,
    json_option,
    out_option,
    picture_option,
    seed_option,
    workers_option,
)
from pipeline.cli._output import check_chart_file, draw_situations, file_kind, print_json, write_chart
from pipeline.cli._progress import bar
from pipeline.cli._spots import spot_command
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import write_text

if TYPE_CHECKING:
    from pipeline.poker.game import Game

CURVE_POINTS = 8
"""iterations at which values and exploitability are printed and drawn"""
METHODS = ("vanilla", "plus", "chance", "external")
"""those of `pipeline.solving.cfr`, written down here so that `--help` need not load it"""


@click.group()
def command() -> None:
    """Solve a game (Kuhn, Leduc, hold'em without betting after the flop, limit hold'em) or a spot of no-limit hold'em.

    Example: pipeline solve kuhn
    """


_small_game_options = add_options(
    click.option(
        "--method", type=click.Choice(METHODS), help="How it is solved.  [default: plus, in large games external]"
    ),
    click.option("--iterations", type=STEPS, default=2000, show_default=True, help="Iterations to run."),
    seed_option,
    click.option("--watch", multiple=True, help="Show the mix at BETTING:CARD[BOARD], like cr:K; may be repeated."),
    picture_option,
    json_option,
)
"""the options that Kuhn and Leduc share"""


@command.command("kuhn")
@click.option(
    "--players",
    type=click.IntRange(2, 13),
    default=2,
    show_default=True,
    help="Players; up to 12 can be dealt and played.",
)
@_small_game_options
def kuhn_command(players: int, **options: Any) -> None:
    """Solve Kuhn poker: one card each, one bet of one chip.

    With two players the value is -1/18 for the first. With more no equilibrium is promised: look at the players'
    gains by best response.

    Example: pipeline solve kuhn --players 4 --iterations 500
    """
    from pipeline.solving.small import kuhn_game

    _solve_small(kuhn_game(players), **options)


@command.command("leduc")
@_small_game_options
def leduc_command(**options: Any) -> None:
    """Solve Leduc poker: one card each of six, a board card, two rounds.

    Example: pipeline solve leduc --iterations 1000 --watch r:A
    """
    from pipeline.poker.game import find_game

    _solve_small(find_game("leduc.limit.2p"), **options)


def _solve_small(
    game: Game,
    method: str | None,
    iterations: int,
    seed: int,
    watch: tuple[str, ...],
    picture: Path | None,
    as_json: bool,
) -> None:
    from pipeline.solving.cfr import ExactSolver
    from pipeline.solving.small import SmallGame, Spot

    if picture is not None:
        file_kind(picture, ".html", ".svg", option="--picture")
    began = time.monotonic()
    solver = ExactSolver(game, method or "", seed)
    spots = [Spot.parse(text) for text in watch] or SmallGame(game).spots()[: game.ranks]
    with bar(game.name, "iterations") as progress:
        solution = solver.solve(iterations, points=CURVE_POINTS, watch=spots, progress=progress)
    seconds = time.monotonic() - began
    if picture is not None:
        from pipeline.report.pages import solution_page, solution_picture

        draw = solution_picture if picture.suffix.lower() == ".svg" else solution_page
        write_text(picture, draw(solution, [str(spot) for spot in spots]))
    if as_json:
        print_json(solution.json() | {"seconds": seconds, "watched": [str(spot) for spot in spots]})
        return
    head = ["iteration", "exploitability", *(f"value {p + 1}" for p in range(game.players))]
    click.echo("  ".join(f"{name:>14}" for name in (*head, *(f"raise {spot}" for spot in spots))))
    for point in solution.curve:
        exact = "-" if point.exploitability is None else f"{point.exploitability:.6f}"
        cells = [str(point.iteration), exact, *(f"{value:+.5f}" for value in point.value)]
        click.echo("  ".join(f"{cell:>14}" for cell in (*cells, *(f"{mix[2]:.4f}" for mix in point.frequencies))))
    if solution.gains is not None:
        gains = "  ".join(f"{gain:.5f}" for gain in solution.gains)
        click.echo(f"best responses would win {gains} more (chips per hand, by player)")
    click.echo(f"{game.name}: {solution.iterations:,} iterations of {solution.method} in {seconds:.1f} s")
    if picture is not None:
        click.echo(str(picture))


@command.command("preflop")
@click.option(
    "--below",
    type=Finite(0, min_open=True),
    default=0.005,
    show_default=True,
    help="Stop when the exploitability is below this, in mbb per hand.",
)
@out_option("Write the chart: .chart or .txt, .svg, .json.", FILE, required=False)
@json_option
def preflop_command(below: float, out: Path | None, as_json: bool) -> None:
    """Solve hold'em without betting after the flop exactly, and draw its starting hands as 13x13 charts.

    It is Selby's game with the ACPC's three raises. A chart shows the hands that reach its situation under the
    solution; `..` is one that hardly ever does.

    Example: pipeline solve preflop --below 0.1
    """
    from pipeline.poker.game import find_game
    from pipeline.solving import preflop

    check_chart_file(out)
    began = time.monotonic()
    with bar("preflop hold'em", "iterations") as progress:
        solution = preflop.solve_preflop(find_game(HOLDEM), below_mbb=below, progress=progress)
    seconds = time.monotonic() - began
    chart = preflop.to_chart(solution)
    if out is not None:
        from pipeline.report.grids import largest

        write_chart(chart, out, largest(chart, len(chart.words)), title="Hold'em without betting after the flop")
    if as_json:
        print_json({"game": f"{HOLDEM}.preflop", **solution.json(), "seconds": seconds})
        return
    drawn, reached = preflop.reached_chart(solution)
    draw_situations(drawn, range(len(drawn.words)), reached)
    click.echo()
    click.echo(
        f"small blind {solution.value_mbb:+.2f} mbb/h, exploitability {solution.exploitability_mbb:.4f} mbb/h after "
        f"{solution.iterations:,} iterations in {seconds:.1f} s" + (f", chart written to {out}" if out else "")
    )


command.add_command(spot_command)


@command.command("holdem")
@out_option("Where to keep the run.", FOLDER)
@click.option("--deals", type=DEALS_RANGE, default=64_000_000, show_default=True, help="Deals to learn from.")
@click.option(
    "--sizes", help="Buckets on flop, turn and river.  [default: 1000,1000,500, for three players 100,100,100]"
)
@game_option()
@seed_option
@workers_option
@cluster_option
@json_option
def holdem_command(
    out: Path,
    deals: int,
    sizes: str | None,
    game: str | None,
    seed: int,
    workers: int,
    cluster: str | None,
    as_json: bool,
) -> None:
    """Solve limit hold'em for two or three players in buckets, by external-sampling CFR; play it as @teacher:DIR.

    A run that was interrupted goes on from its checkpoint in DIR. Only --workers 1 gives the same bytes again. For
    three players no equilibrium is promised.

    Example: pipeline solve holdem --out out/teacher --deals 4000000

    Example: pipeline solve holdem --game holdem.limit.3p --out out/three --deals 4000000
    """
    from pipeline.poker.game import find_game
    from pipeline.solving.teacher import SIZES, RunReport, solve_holdem

    played = find_game(HOLDEM if game is None else game)
    parts = (sizes or ",".join(map(str, SIZES.get(played.players, SIZES[2])))).split(",")
    if len(parts) != 3 or not all(part.strip().isdigit() and 0 < int(part) < 32768 for part in parts):
        raise PipelineError(f"--sizes {sizes}: name buckets for flop, turn and river, like 1000,1000,500")
    flop, turn, river = (int(part) for part in parts)

    def report(checkpoint: RunReport) -> None:
        results = [f"{name} {match.mbb:+.0f}" for name, match in checkpoint.opponents.items()]
        if checkpoint.earlier is not None:
            results.append(f"itself at a quarter {checkpoint.earlier.mbb:+.1f} ± {checkpoint.earlier.ci95:.1f}")
        click.echo(
            f"{checkpoint.deals:,} deals, {checkpoint.seconds:.0f} s; mbb/h against {', '.join(results)}", err=True
        )

    began = time.monotonic()
    text = f"pipeline solve holdem --sizes {','.join(parts)} --deals {deals} --seed {seed} --workers {workers}"
    text += "" if game is None else f" --game {game}"
    with connected(cluster) as dask, bar("hold'em", "deals") as progress:
        last = solve_holdem(
            played,
            out,
            sizes=(flop, turn, river),
            seed=seed,
            deals=deals,
            workers=workers,
            cluster=dask,
            facts={"command": text},
            progress=progress,
            report=report,
        )
    seconds = time.monotonic() - began
    if as_json:
        about = {"game": played.name, "players": played.players, "iterations": deals, "seconds": seconds}
        unknown = {"value": None, "exploitability": None}  # too large a game to measure
        print_json(about | unknown | last.json())
        return
    click.echo(f"solved in {seconds:.0f} s; play it as @teacher:{out}")
