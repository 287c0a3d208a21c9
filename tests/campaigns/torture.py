"""Campaigns that look for what breaks, for seconds or for hours: `python tests/campaigns/torture.py NAME --count N
--seed S`.

Each prints its counts as one JSON object; a failure ends with a traceback, names the seed and leaves its input in a
file that it names. `tests/campaigns/test_campaigns.py` runs short ones with the other tests and long ones with `make
test-long`; docs/reliability.md has the last results.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import click

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "support"), str(TESTS / "arena"), str(TESTS.parent)]


def told(name: str, seed: int, found: dict[str, Any], began: float) -> None:
    """Print what a campaign came to."""
    click.echo(json.dumps({"campaign": name, "seed": seed, **found, "seconds": round(time.monotonic() - began, 1)}))


def note(text: str) -> None:
    """Show what is being tried, where somebody watches."""
    if sys.stderr.isatty():
        click.echo(f"\r{text:<100.100}", err=True, nl=False)


@click.group()
def group() -> None:
    """Look for what breaks, with a number of attempts and a seed."""
    logging.getLogger("pipeline.arena.wire.sockets").setLevel(
        logging.ERROR
    )  # what players are warned of is what is wanted here


def options(count: int) -> Any:
    """The options that all campaigns have."""

    def add(function: Any) -> Any:
        function = click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same attempts.")(
            function
        )
        return click.option("--count", type=click.IntRange(1), default=count, show_default=True, help="Attempts.")(
            function
        )

    return add


@group.command()
@options(5000)
@click.option("--only", multiple=True, help="Kinds of files: bundle, strategy, pattern, chart, dataset ...")
def mutations(count: int, seed: int, only: tuple[str, ...]) -> None:
    """Harm files of every kind, structure by structure, COUNT times each."""
    from mutations import campaign

    began = time.monotonic()
    told("mutations", seed, campaign(count, seed, only), began)


@group.command()
@options(520)
@click.option(
    "--only", multiple=True, help="Commands: ingest, train, solve, cache, sample, report, ship, counter, export."
)
def kills(count: int, seed: int, only: tuple[str, ...]) -> None:
    """Kill commands at every change of the disk and compare what a second run leaves."""
    from kills import campaign

    began = time.monotonic()
    told("kills", seed, campaign(count, seed, only, note), began)


@group.command()
@options(200_000)
@click.option(
    "--first", type=click.IntRange(0), default=0, help="Leave out so many batches of 2,000 lines: go on there."
)
def differential(count: int, seed: int, first: int) -> None:
    """Compare ingest with rules written a second time, on COUNT generated and mutated lines of every form and game."""
    from differential import campaign

    began = time.monotonic()
    told("differential", seed, campaign(count, seed, first), began)


@group.command()
@options(20_000)
def histories(count: int, seed: int) -> None:
    """Read and play COUNT harmed hand histories here and by PokerKit: what is accepted here is replayed alike there."""
    from histories_campaign import attack

    began = time.monotonic()
    told("histories", seed, attack(count, seed), began)


@group.command()
@options(100)
def misbehaviours(count: int, seed: int) -> None:
    """Let COUNT players misbehave at the dealer and COUNT dealers at the client; each must be over in seconds."""
    from wire_campaign import misbehaviours

    began = time.monotonic()
    told("misbehaviours", seed, misbehaviours(count, seed), began)


@group.command()
@options(2_000)
@click.option(
    "--dealer",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path),
    required=True,
    help="The official dealer, built.",
)
@click.option("--record", is_flag=True, help="Ask it the answers of the fixture again first, and write them there.")
def answers(count: int, seed: int, dealer: Path, record: bool) -> None:
    """Compare what our dealer and the official one make of COUNT odd answers."""
    import dealer_answers

    began = time.monotonic()
    if record:
        dealer_answers.record(dealer)
    told("answers", seed, dealer_answers.campaign(count, seed, dealer), began)


@group.command()
@options(100_000)
@click.option("--first", type=click.IntRange(0), default=0, help="Leave out so many matches of 200 hands: go on there.")
def resets(count: int, seed: int, first: int) -> None:
    """Play COUNT hands over connections that break at random; the logs must equal undisturbed ones."""
    from wire_campaign import resets

    began = time.monotonic()
    told("resets", seed, resets(count, seed, first), began)


@group.command()
@options(200)
def clocks(count: int, seed: int) -> None:
    """Play COUNT matches while the time of day jumps forwards and backwards; the logs must equal undisturbed ones."""
    from wire_campaign import clocks

    began = time.monotonic()
    told("clocks", seed, clocks(count, seed), began)


@group.command()
@options(10_000)
def descriptors(count: int, seed: int) -> None:
    """Play COUNT matches over sockets in one process; it must hold no more files and threads in the end."""
    from wire_campaign import descriptors

    began = time.monotonic()
    told("descriptors", seed, descriptors(count, seed), began)


@group.command()
@options(3600)
@click.option("--ordinary", is_flag=True, help="Remember as many situations as ordinarily, instead of 64 of each kind.")
def soak(count: int, seed: int, ordinary: bool) -> None:
    """Play four matches at once for COUNT seconds of computing time; the memory must stay where it is."""
    from wire_campaign import soak

    began = time.monotonic()
    told("soak", seed, soak(count, seed, ordinary, partial(click.echo, err=True)), began)


@group.command()
@options(20)
@click.option("--deals", type=click.IntRange(1), default=1_000_000, show_default=True, help="Deals of each response.")
@click.option("--hands", type=click.IntRange(4), default=60_000, show_default=True, help="Hands of each match.")
@click.option("--each", is_flag=True, help="Print every bound.")
def bounds(count: int, seed: int, deals: int, hands: int, each: bool) -> None:
    """Compare lower bounds of exploitability of COUNT perturbed teachers with what the responses win once more."""
    from bounds_campaign import campaign

    began = time.monotonic()
    told("bounds", seed, campaign(count, seed, deals, hands, partial(click.echo, err=True) if each else note), began)


@group.command()
@options(300)
def growing(count: int, seed: int) -> None:
    """Change a log COUNT times while it is ingested: refused, or the rows of one of its two states."""
    from growing import campaign

    began = time.monotonic()
    told("growing", seed, campaign(count, seed), began)


def pieces() -> list[list[str]]:
    """Every campaign at its full count, but for the soaks, in pieces of some minutes: words of this program."""
    from test_campaigns import KINDS

    return [
        *(["resets", "--count", "10000", "--seed", "1", "--first", str(50 * i)] for i in range(10)),
        *(["differential", "--count", "100000", "--seed", "7", "--first", str(50 * i)] for i in range(20)),
        *(
            ["mutations", "--count", "1000", "--seed", str(2000 + 1000 * i), "--only", k]
            for k in KINDS
            for i in range(5)
        ),
        ["misbehaviours", "--count", "100", "--seed", "2"],
        ["bounds", "--count", "20", "--seed", "1"],
        *(["histories", "--count", "4000", "--seed", str(5 + i)] for i in range(5)),
        ["kills", "--count", "520", "--seed", "2"],
        ["growing", "--count", "300", "--seed", "1"],
        ["clocks", "--count", "200", "--seed", "1"],
    ]


@group.command()
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Pieces at the same time.")
def every(results: Path, jobs: int) -> None:
    """Run all campaigns but the soaks in full, a line for each piece into RESULTS; after a stop it goes on there."""
    lines = results.read_text().splitlines() if results.exists() else []
    done = [json.loads(line)["piece"] for line in lines]

    def one(words: list[str]) -> str:
        ended = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=False)
        if ended.returncode:
            return f"{' '.join(words)} ended with {ended.returncode}: {ended.stderr[-1000:]}"
        with results.open("a") as file:
            file.write(json.dumps({"piece": words, **json.loads(ended.stdout)}) + "\n")
        return ""

    wanted = [words for words in pieces() if words not in done]
    with ThreadPoolExecutor(jobs) as pool:
        failed = [said for said in pool.map(one, wanted) if said]
    sums: Counter[str] = Counter()
    for line in results.read_text().splitlines():
        found = json.loads(line)
        sums.update(
            {f"{found['campaign']}: {name}": n for name, n in found.items() if isinstance(n, int) and name != "seed"}
        )
    click.echo(json.dumps(dict(sorted(sums.items())), indent=1))
    if failed:
        raise click.ClickException("\n".join(failed))


if __name__ == "__main__":
    group()
