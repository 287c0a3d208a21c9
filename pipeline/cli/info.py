"""`info`: what a dataset, a bundle, a stored strategy or a portfolio holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pipeline.cli._tables import sentence_text, table_text

MOST_AGENTS, MOST_NAMES = 40, 8
"""agents of a dataset, and names that a bundle imitates, which are printed"""


@click.command()
@click.argument("path", metavar="DIR|BUNDLE", type=click.Path(path_type=Path))
@click.option("--verify", is_flag=True, help="Read every file and compare it with the manifest.")
@click.option("--json", "as_json", is_flag=True, help="One object on stdout.")
def command(path: Path, verify: bool, as_json: bool) -> None:
    """Say what a dataset (agents, hands, decisions, streets, options) or a bundle (models, scores, size) holds.

    Of a stored strategy it says the game, its buckets and, of a counter-strategy, whom it was made against and what it
    wins and risks; of a portfolio its strategies and the opponents that it knows.

    Example: pipeline info models/teacher
    """
    from pipeline.api.overview import describe

    found = describe(path, verify=verify)
    if as_json:
        click.echo(json.dumps(found))
        return
    click.echo(
        {"dataset": _dataset, "bundle": _bundle, "strategy": _strategy, "portfolio": _portfolio}[found["kind"]](found)
    )
    if verify:
        click.echo(f"all {found['files']} files are whole")


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


def _facts(facts: dict[str, str]) -> str:
    return "\n".join(sentence_text(f"  {name:<10} {value}", " " * 13) for name, value in facts.items() if value)


def _options(options: dict[str, Any]) -> str:
    """Options that differ from nothing, as `name=value`."""
    return " ".join(f"{name}={value}" for name, value in options.items() if value not in (None, [], {}, ""))


def _logs(files: int, inside: int) -> str:
    """How many logs there are, and in how many files where archives hold them."""
    said = f"{inside:,} log{'' if inside == 1 else 's'}"
    return said if inside == files else f"{said} of {files:,} file{'' if files == 1 else 's'}"


def _fewer(one: dict[str, Any]) -> tuple[int, str]:
    """Agents with many decisions first."""
    return -one["decisions"], one["agent"]


def _some(agents: list[str]) -> str:
    """The names of agents, a few where they are many."""
    return ", ".join(agents) if len(agents) <= MOST_NAMES else f"{', '.join(agents[:3])} and {len(agents) - 3:,} more"


def _range(found: Any) -> str:
    """What games a bundle of hand histories plays, if its manifest says it as `train` does."""
    try:
        (fewest, most), stacks = found["players"], found["stacks_bb"]
        deep = "" if stacks is None else f", stacks of {stacks[0]:,g} to {stacks[1]:,g} big blinds"
        return f"games of {fewest} to {most} players{deep}"
    except (TypeError, KeyError, ValueError, IndexError):
        return ""


def _dataset(found: dict[str, Any]) -> str:

    streets = list(found["streets"])
    everybody = found["agents"]
    few = everybody if len(everybody) <= MOST_AGENTS else sorted(everybody, key=_fewer)[:MOST_AGENTS]
    rows = [
        [one["agent"], *(f"{one['streets'].get(street, 0):,}" for street in streets), f"{one['decisions']:,}"]
        for one in few
    ]
    facts = {
        "games": ", ".join(found["games"]),
        "hands": f"{found['hands']:,} in {_logs(len(found['logs']), found['logs_inside'])}",
        "decisions": f"{found['decisions']:,}",
        "rejected": f"{found['rejected']:,} lines" if found["rejected"] else "",
        "options": _options(found["options"]),
        "files": f"{found['files']:,}, {_size(found['bytes'])}, schema version {found['schema']}",
    }
    table = table_text(["agent", *streets, "decisions"], rows)
    others = len(everybody) - len(few)
    more = f"\nand {others:,} agents with fewer decisions, which --json lists" if others else ""
    return f"{found['path']}: a dataset\n{_facts(facts)}\n\n{table}{more}"


def _bundle(found: dict[str, Any]) -> str:
    from pipeline.report.text import number, percent

    rows = [
        [
            " ".join(one["streets"]) or "text rows",
            one["algorithm"] or one["kind"],
            "-" if one["rows"] is None else f"{one['rows']:,}",
            percent(one["error"]),
            number(one["log_loss"]),
            "unfinished" if one["interrupted"] else "",
        ]
        for one in found["models"]
    ]
    facts = {
        "imitates": _some(found["agents"]),
        "game": ", ".join(found["games"]) or "none: it labels text rows",
        "plays": _range(found["data"].get("range")),
        "missing": f"{', '.join(found['missing'])}: run the same `train` command again" if found["missing"] else "",
        "pattern": found["pattern"] or "",
        "options": _options(found["options"]),
        "files": f"{found['files']:,}, {_size(found['bytes'])}, written by version {found['version']}",
    }
    table = table_text(["street", "algorithm", "rows", "error", "log-loss", ""], rows, left=2)
    return f"{found['path']}: a bundle\n{_facts(facts)}\n\n{table}"


def _strategy(found: dict[str, Any]) -> str:
    solved = "an equilibrium" if found["players"] == 2 else "all players learnt together"
    facts = {
        "game": ", ".join(found["games"]),
        "against": found["against"] or f"nobody: {solved}",
        "buckets": ", ".join(f"{street} {count:,}" for street, count in found["buckets"].items()),
        "options": _options(found["options"]),
        "files": f"{found['files']:,}, {_size(found['bytes'])}, format {found['version']}",
    }
    said = f"{found['path']}: a stored strategy\n{_facts(facts)}"
    counter = found["counter"]
    if counter is None:
        return said
    rows = [
        [f"{one['share']:g}" + (" *" if one["share"] == counter["share"] else ""), *_ends(one)]
        for one in counter["curve"]
    ]
    table = table_text(["trust", f"wins, {found['unit']}", "exploitable for"], rows)
    return f"{said}\n\n{table}"


def _portfolio(found: dict[str, Any]) -> str:
    facts = {
        "game": ", ".join(found["games"]),
        "strategies": ", ".join(found["members"]),
        "opponents": ", ".join(found["opponents"]),
        "options": _options(found["options"]),
        "files": f"{found['files']:,}, {_size(found['bytes'])}, format {found['version']}",
    }
    return f"{found['path']}: a portfolio, strategies for @adaptive to choose from\n{_facts(facts)}"


def _ends(one: dict[str, float]) -> list[str]:
    """What a strategy of the curve wins and risks."""
    return [f"{one['winnings']:+.1f}", f"{one['exploitability']:.1f}"]
