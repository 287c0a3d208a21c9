"""`info`: the contents of a dataset, a bundle, a stored strategy or a portfolio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pipeline.cli._options import PATH, json_option
from pipeline.cli._output import one_line, print_json, sentence_text, table_text

MOST_AGENTS, MOST_NAMES = 40, 8
"""agents of a dataset, and names that a bundle imitates, which are printed"""


@click.command()
@click.argument("path", metavar="DIR|BUNDLE", type=PATH)
@click.option("--verify", is_flag=True, help="Read every file and compare it with the manifest.")
@json_option
def command(path: Path, verify: bool, as_json: bool) -> None:
    """Describe a dataset, a bundle, a stored strategy or a portfolio.

    It lists the agents, hands, decisions and options of a dataset; the models, scores and size of a bundle, the folder
    that `train` writes; the game and buckets of a strategy that `solve` or `counter` wrote and, of a counter-strategy,
    its opponent, winnings and risk; the strategies of a portfolio and the opponents that it knows.

    Example: pipeline info models/teacher
    """
    from pipeline.api.overview import describe

    facts = dict(describe(path, verify=verify).facts)
    if as_json:
        print_json(facts)
        return
    click.echo(
        {"dataset": _dataset_text, "bundle": _bundle_text, "strategy": _strategy_text, "portfolio": _portfolio_text}[
            facts["kind"]
        ](facts)
    )
    if verify:
        click.echo(f"all {facts['files']} files are whole")


def _bytes_text(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


def _facts_text(facts: dict[str, str]) -> str:
    return "\n".join(sentence_text(f"  {name:<10} {value}", " " * 13) for name, value in facts.items() if value)


def _options_text(options: dict[str, Any]) -> str:
    """Return the options that are set, as `name=value`."""
    return " ".join(f"{name}={value}" for name, value in options.items() if value not in (None, [], {}, ""))


def _logs_text(files: int, inside: int) -> str:
    """Return the number of logs, and of files where archives hold them."""
    counted = f"{inside:,} log{'' if inside == 1 else 's'}"
    return counted if inside == files else f"{counted} of {files:,} file{'' if files == 1 else 's'}"


def _most_decisions_first(agent: dict[str, Any]) -> tuple[int, str]:
    """Return the key that sorts agents with many decisions first."""
    return -agent["decisions"], agent["agent"]


def _names_text(agents: list[str]) -> str:
    """Return the names of agents, three where they are many."""
    return ", ".join(agents) if len(agents) <= MOST_NAMES else f"{', '.join(agents[:3])} and {len(agents) - 3:,} more"


def _games_text(games: Any) -> str:
    """Return the games that a bundle of hand histories plays; nothing of others."""
    if games is None:
        return ""
    (fewest, most), stacks = games["players"], games["stacks_bb"]
    deep = "" if stacks is None else f", stacks of {stacks[0]:,g} to {stacks[1]:,g} big blinds"
    return f"games of {fewest} to {most} players{deep}"


def _dataset_text(about: dict[str, Any]) -> str:
    streets = list(about["streets"])
    all_agents = about["agents"]
    listed = (
        all_agents if len(all_agents) <= MOST_AGENTS else sorted(all_agents, key=_most_decisions_first)[:MOST_AGENTS]
    )
    rows = [
        [agent["agent"], *(f"{agent['streets'].get(street, 0):,}" for street in streets), f"{agent['decisions']:,}"]
        for agent in listed
    ]
    facts = {
        "games": ", ".join(about["games"]),
        "hands": f"{about['hands']:,} in {_logs_text(len(about['logs']), about['logs_inside'])}",
        "decisions": f"{about['decisions']:,}",
        "rejected": f"{about['rejected']:,} lines" if about["rejected"] else "",
        "options": _options_text(about["options"]),
        "files": f"{about['files']:,}, {_bytes_text(about['bytes'])}, schema version {about['schema']}",
    }
    table = table_text(["agent", *streets, "decisions"], rows)
    others = len(all_agents) - len(listed)
    more = f"\nand {others:,} agents with fewer decisions, which --json lists" if others else ""
    return f"{one_line(about['path'])}: a dataset\n{_facts_text(facts)}\n\n{table}{more}"


def _bundle_text(about: dict[str, Any]) -> str:
    from pipeline.models.shipping import hands_to_tell_text
    from pipeline.report.text import number, percent

    hands = hands_to_tell_text(about["data"])
    rows = [
        [
            " ".join(model["streets"]) or "text rows",
            model["algorithm"] or model["kind"],
            "-" if model["rows"] is None else f"{model['rows']:,}",
            percent(model["error"]),
            number(model["log_loss"]),
            "unfinished" if model["interrupted"] else "",
        ]
        for model in about["models"]
    ]
    facts = {
        "imitates": _names_text(about["agents"]),
        "game": ", ".join(about["games"]) or "none: it labels text rows",
        "plays": _games_text(about["data"].get("range")),
        "missing": f"{', '.join(about['missing'])}: run the same `train` command again" if about["missing"] else "",
        "pattern": about["pattern"] or "",
        "options": _options_text(about["options"]),
        "remark": about["data"].get("remark", ""),
        "told": f"by a perfect detector after {hands}" if hands else "",
        "files": f"{about['files']:,}, {_bytes_text(about['bytes'])}, written by version {about['version']}",
    }
    table = table_text(["street", "algorithm", "rows", "error", "log-loss", ""], rows, words=2)
    return f"{one_line(about['path'])}: a bundle\n{_facts_text(facts)}\n\n{table}"


def _strategy_text(about: dict[str, Any]) -> str:
    solved = "an equilibrium" if about["players"] == 2 else "all players learnt together"
    facts = {
        "game": ", ".join(about["games"]),
        "against": about["against"] or f"no opponent: {solved}",
        "buckets": ", ".join(f"{street} {count:,}" for street, count in about["buckets"].items()),
        "options": _options_text(about["options"]),
        "files": f"{about['files']:,}, {_bytes_text(about['bytes'])}, format {about['version']}",
    }
    text = f"{one_line(about['path'])}: a stored strategy\n{_facts_text(facts)}"
    counter = about["counter"]
    if counter is None:
        return text
    rows = [
        [f"{point['share']:g}" + (" *" if point["share"] == counter["share"] else ""), *_point_cells(point)]
        for point in counter["curve"]
    ]
    table = table_text(["trust", f"wins, {about['unit']}", "exploitable for"], rows)
    return f"{text}\n\n{table}"


def _portfolio_text(about: dict[str, Any]) -> str:
    facts = {
        "game": ", ".join(about["games"]),
        "strategies": ", ".join(about["members"]),
        "opponents": ", ".join(about["opponents"]),
        "options": _options_text(about["options"]),
        "files": f"{about['files']:,}, {_bytes_text(about['bytes'])}, format {about['version']}",
    }
    return f"{one_line(about['path'])}: a portfolio, strategies for @adaptive to choose from\n{_facts_text(facts)}"


def _point_cells(point: dict[str, float]) -> list[str]:
    """Return the cells of a point of the curve: winnings and exploitability."""
    return [f"{point['winnings']:+.1f}", f"{point['exploitability']:.1f}"]
