"""Stored strategies: quantised probabilities, the centroids of their buckets, a manifest with a checksum; their copies.

In: a strategy (a row of fold, call and raise per decision, see `layout`), the centroids of its flop and turn
clusters, and facts about its making. Out: one xz file with a safetensors image inside and a JSON manifest in
its folder, with the file's SHA-256, that is compared before anything is read. A probability becomes one of `LEVELS` + 1
steps; those under `DROPPED_BELOW` are set to 0 first (they are mostly left from early iterations), which also
makes most rows pure.

Rows are stored node by node with buckets in order, where neighbours agree, so that they compress well.

Strategies of small games (Kuhn, Leduc) are stored the same way with whole probabilities and no buckets.

`ship_strategy` opens and checks a stored strategy and copies it with a README and start scripts, as `models.shipping`
does for bundles. The same strategy under the same name gives the same bytes.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.models.artifacts import (
    MANIFEST,
    MOST_UNPACKED,
    README,
    SMALL_BYTES,
    Shipped,
    check_replaceable,
    describe_start,
    has_files,
    read_checked,
    read_files,
    write_copy,
)
from pipeline.poker.game import Game, find_game, game_names
from pipeline.poker.rules import S_FINISHED
from pipeline.runtime.array_types import Array, Bytes, Singles
from pipeline.runtime.arrays import expect, finite_number, parse_json, read_arrays, whole_number
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import replacing, sha256
from pipeline.runtime.version import __version__
from pipeline.solving.layout import Layout
from pipeline.solving.small import SmallGame

LEVELS = 30
"""steps of a probability: thirds, fifths and halves are exact"""
DROPPED_BELOW = 0.04
"""probabilities under this are stored as 0"""
STRATEGY = "strategy.xz"
OWN_FILES = {MANIFEST, STRATEGY, README, "start.sh"}
"""files of a stored or shipped strategy's folder"""
MOST_BUCKETS = 4096
"""of a street, four times those of the strategy that comes with the package: all holdings are assigned to them"""
MOST_ROWS = 1 << 24
"""decisions of a strategy, nearly five times those of the one that comes with the package"""
HEADER = 1 << 16
"""bytes of the longest header of a strategy's arrays"""
UNPACKING_MEMORY = 1 << 28
"""bytes of memory that xz may take"""


def quantise(strategy: Singles, least: float = DROPPED_BELOW) -> Bytes:
    """Round probabilities (rows, 3) to (rows, 2) steps of fold and raise; calling has the rest of `LEVELS`.

    >>> quantise(np.array([[0.5, 0.5, 0.0], [0.01, 0.66, 0.33]], dtype=np.float32)).tolist()
    [[15, 0], [0, 10]]
    """
    mix = np.where(strategy < least, 0.0, strategy)
    mix = mix / mix.sum(axis=1, keepdims=True)
    out = np.rint(mix[:, (0, 2)] * LEVELS).astype(np.uint8)
    over = out.sum(axis=1) > LEVELS
    out[over, 1] = LEVELS - out[over, 0]
    return out


def dequantise(steps: Bytes) -> Singles:
    """Return the (rows, 3) probabilities of quantised rows."""
    out = np.empty((len(steps), 3), dtype=np.float32)
    out[:, 0] = steps[:, 0] / np.float32(LEVELS)
    out[:, 2] = steps[:, 1] / np.float32(LEVELS)
    out[:, 1] = (LEVELS - steps.sum(axis=1)) / np.float32(LEVELS)
    return out


def transposed(layout: Layout, steps: Bytes, *, back: bool) -> Bytes:
    """Reorder rows from bucket-major to node-major within each street and player, or `back`."""
    # at a node neighbouring buckets play alike, while a bucket's neighbouring nodes differ: so runs are longer for xz
    out = np.empty_like(steps)
    for block in layout.blocks:
        nodes = len(block.nodes)
        shape = (nodes, block.buckets, 2) if back else (block.buckets, nodes, 2)
        out[block.rows] = steps[block.rows].reshape(shape).swapaxes(0, 1).reshape(-1, 2)
    return out


@dataclass(frozen=True)
class StoredStrategy:
    """A bucketed strategy as it is read from its file."""

    layout: Layout
    steps: Bytes
    """(rows, 2): see `quantise`"""
    flop: Bytes
    """(clusters, 8) centroids"""
    turn: Bytes
    digest: str
    """SHA-256 of the file"""
    facts: dict[str, Any]
    """how it was made"""


def save_strategy(
    folder: Path, layout: Layout, steps: Bytes, *, flop: Bytes, turn: Bytes, facts: dict[str, Any]
) -> None:
    """Write the file and its manifest."""
    stored = transposed(layout, steps, back=False)
    arrays = {"fold": stored[:, 0], "raise": stored[:, 1]}
    arrays |= {"flop": np.asarray(flop, np.uint8), "turn": np.asarray(turn, np.uint8)}
    write_checked(folder, arrays, {"game": layout.game.name, "sizes": list(layout.sizes), "levels": LEVELS}, facts)


def write_checked(folder: Path, arrays: Mapping[str, Array], about: dict[str, Any], facts: dict[str, Any]) -> None:
    """Write arrays to `strategy.xz`, and the manifest with its checksum; the folder may hold a checkpoint as well."""
    from safetensors.numpy import save

    folder.mkdir(parents=True, exist_ok=True)
    image = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    with replacing(folder / STRATEGY) as part:
        part.write_bytes(lzma.compress(image, preset=6))
    manifest = {"version": 1, **about, "sha256": sha256(folder / STRATEGY), **facts}
    with replacing(folder / MANIFEST) as part:
        part.write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def is_strategy(folder: Path) -> bool:
    """Return whether a folder or zip file holds a stored strategy."""
    return has_files(folder, {STRATEGY, MANIFEST})


def is_portfolio(folder: Path) -> bool:
    """Return whether a folder holds a portfolio (see `portfolio`): stored like a strategy, but of several."""
    try:
        return is_strategy(folder) and "members" in strategy_facts(folder)
    except PipelineError:
        return False


def strategy_files(folder: Path) -> dict[str, bytes]:
    """Read the manifest and the arrays of a stored strategy, as bytes by file name."""
    return {name: bytes(data) for name, data in read_files(folder, {MANIFEST, STRATEGY})}


def strategy_facts(folder: Path) -> dict[str, Any]:
    """Read a strategy's manifest and check its keys."""
    try:
        manifest = parse_json(strategy_files(folder)[MANIFEST])
        str(manifest["sha256"]), str(manifest["game"]), manifest["version"], manifest["levels"]
        manifest["sizes"] = [whole_number(size, "a number of buckets", 1, 65535) for size in manifest["sizes"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise PipelineError(f"{folder} has no readable {MANIFEST}: solve again or reinstall") from None
    if (manifest["version"], manifest["levels"]) != (1, LEVELS):
        raise PipelineError(f"{folder}: made by another version of this program; solve again")
    return dict(manifest)


def counter_facts(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return how a counter-strategy was chosen, from its manifest; None of an equilibrium, `ValueError` if damaged."""
    counter = facts.get("counter")
    if counter is None:
        return None
    try:
        json.dumps(counter, allow_nan=False)
        for tradeoff in (counter, counter.get("equilibrium") or counter, *counter["curve"]):
            for key in ("share", "winnings", "exploitability"):
                finite_number(tradeoff[key], key)  # JSON allows whole numbers that no float can hold
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"it does not say what the counter wins and risks ({error})") from None
    return dict(counter)


def strategy_game(folder: Path) -> Game:
    """Find the game that a stored strategy plays; reads no more than the manifest."""
    name = str(strategy_facts(folder)["game"])
    if name not in game_names():
        raise PipelineError(f"{folder} plays {name[:60]!r}, a game that does not come with this package: name its file")
    return find_game(name)


def save_small_strategy(folder: Path, game: Game, strategy: npt.NDArray[np.float64], facts: dict[str, Any]) -> None:
    """Write the strategy of a small game (see `small`): (rows, 3) probabilities."""
    write_checked(
        folder, {"mix": np.asarray(strategy, np.float64)}, {"game": game.name, "sizes": [], "levels": LEVELS}, facts
    )


def load_small_strategy(folder: Path, game: Game) -> npt.NDArray[np.float64]:
    """Read the strategy of a small game: (rows, 3) probabilities that sum to 1."""
    file, data = folder / STRATEGY, _read_checked(folder, strategy_facts(folder), game)
    small = SmallGame(game)
    rows = small.rows
    try:
        mix = expect(read_arrays(unpack(data, 24 * rows + HEADER)), "mix", np.float64, (rows, 3), 0.0, 1.0)
    except (ValueError, lzma.LZMAError) as error:
        raise PipelineError(f"{file} does not hold a strategy of {game.name} ({error}): solve again") from None
    decisions = np.repeat(small.tree.states[:, S_FINISHED] == 0, small.infos)
    legal = np.repeat(small.tree.child >= 0, small.infos, axis=0)
    if np.abs(mix.sum(axis=1) - 1)[decisions].max() > 1e-6 or mix[~legal].any():
        raise PipelineError(f"{file} has probabilities that do not sum to 1 over legal actions: solve again")
    return np.asarray(mix)


def _read_checked(folder: Path, manifest: dict[str, Any], game: Game | None) -> bytes:
    """Read the strategy's file; one that is not that of the manifest, or not for the game, is refused."""
    if game is not None and game.name != manifest["game"]:
        raise PipelineError(f"{folder} plays {manifest['game']}, not {game.name}")
    return read_packed(folder, manifest, "solve again or reinstall")


def read_packed(folder: Path, manifest: Mapping[str, Any], remedy: str) -> bytes:
    """Read the packed arrays of a strategy or portfolio and compare them with the manifest's checksum."""
    return bytes(read_checked(folder, {STRATEGY: str(manifest["sha256"])}, remedy)[STRATEGY])


def check_rows(layout: Layout, folder: Path) -> None:
    """Refuse a strategy that is too large to read back, before it is solved or unpacked."""
    if layout.rows > MOST_ROWS or max(layout.sizes) > MOST_BUCKETS:
        sizes = ", ".join(map(str, layout.sizes))
        raise PipelineError(
            f"{folder}: a strategy with the buckets {sizes} has {layout.rows:,} decisions; it may have {MOST_BUCKETS:,}"
            f" buckets on a street and {MOST_ROWS:,} decisions: solve with fewer buckets (--sizes)"
        )


def load_strategy(folder: Path, game: Game | None = None) -> StoredStrategy:
    """Read a strategy; one that was damaged, or is not for `game`, is refused."""
    manifest = strategy_facts(folder)
    name, sizes, digest = str(manifest["game"]), tuple(manifest["sizes"]), str(manifest["sha256"])
    file, data = folder / STRATEGY, _read_checked(folder, manifest, game)
    layout = Layout(game or strategy_game(folder), sizes)
    check_rows(layout, folder)
    try:
        arrays = read_arrays(unpack(data, 2 * layout.rows + 16 * max(sizes) + HEADER))
        fold = expect(arrays, "fold", np.uint8, (layout.rows,), 0, LEVELS)
        rise = expect(arrays, "raise", np.uint8, (layout.rows,), 0, LEVELS)
        flop, turn = (_centroids(arrays, street) for street in ("flop", "turn"))
        if layout.game.is_holdem and (169, len(flop), len(turn)) != sizes[:3]:
            raise ValueError("its buckets are not those of its centroids")
    except (ValueError, lzma.LZMAError) as error:
        raise PipelineError(f"{file} does not hold a strategy of {name} ({error}): solve again or reinstall") from None
    steps = np.stack([fold, rise], axis=1)
    if (fold > LEVELS - rise).any():
        raise PipelineError(f"{file} has probabilities that sum to more than 1: solve again or reinstall")
    facts = {key: value for key, value in manifest.items() if key not in ("sizes", "sha256", "version", "levels")}
    return StoredStrategy(layout, transposed(layout, steps, back=True), flop, turn, digest, facts)


def unpack(packed: bytes, most: int) -> bytes:
    """Unpack an xz file; one that holds over `most` bytes, or that takes much memory to unpack, is refused.

    So is one that unpacks to many times its size, by the limits of zip files.
    """
    most = min(most, max(SMALL_BYTES, MOST_UNPACKED * len(packed)))
    unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=UNPACKING_MEMORY)
    data = unpacking.decompress(packed, max_length=most + 1)
    if len(data) > most or not unpacking.eof:
        raise ValueError(f"it unpacks to over {most:,} bytes or is cut short")
    return data


def _centroids(arrays: Mapping[str, Array], street: str) -> Bytes:
    """Return a street's centroids, (clusters, 8), weakest first as `hand_clusters` needs them."""
    centroids = expect(arrays, street, np.uint8, (None, 8))
    sums = centroids.sum(axis=1, dtype=np.int64)
    if (sums[1:] < sums[:-1]).any():
        raise ValueError(f"the centroids of the {street} are not in order of strength")
    return centroids


# Places and copies


def check_strategy_target(target: Path, *inputs: Path, portfolio: bool = False) -> None:
    """Refuse to write a strategy, or a portfolio, over anything but an empty folder or a folder of its own kind.

    Parameters: `inputs`, what it is made from; none of them may be `target` or inside it.
    """
    kind = "portfolio" if portfolio else "stored strategy"

    def is_kind(path: Path) -> bool:
        return path.is_dir() and is_strategy(path) and is_portfolio(path) == portfolio

    check_replaceable(target, kind, is_kind, *inputs)
    others = {file.name for file in target.iterdir()} - OWN_FILES if target.is_dir() else set()
    if others:
        raise PipelineError(f"{target} holds more than a {kind}, {min(others)} for one: name another place")


def check_strategy(folder: Path) -> None:
    """Open a stored strategy and check all of it; what is damaged raises `PipelineError`."""
    game = strategy_game(folder)
    if game.hole_cards == 1:
        load_small_strategy(folder, game)
    else:
        load_strategy(folder, game)


def ship_strategy(folder: Path, target: Path, scripts: Mapping[str, str]) -> Shipped:
    """Copy a stored strategy to a folder, or to a zip file by its name; `scripts` are added, to be run."""
    check_strategy(folder)
    if target.exists() and target.resolve() == folder.resolve():
        raise PipelineError(f"{folder} cannot be shipped onto itself: name another place with --out")
    if not (target.is_file() and is_strategy(target)):
        check_strategy_target(target, folder)
    facts = strategy_facts(folder)
    try:
        readme = _readme(facts, counter_facts(facts), target.stem)
    except ValueError as error:
        raise PipelineError(f"{folder} has a damaged {MANIFEST}, {error}: find the counter again") from None
    files = strategy_files(folder) | {README: readme.encode()}
    return write_copy(target, files, scripts)


def _readme(facts: dict[str, Any], counter: dict[str, Any] | None, name: str) -> str:
    """Write the text that goes with a shipped strategy."""
    unit = facts.get("unit", "mbb/h")
    lines = [
        f"# {name}",
        "",
        f"A bot that plays {facts['game']} by a stored strategy. It was made with acpc-pipeline {__version__}"
        + (f" to win from {facts.get('against', 'one opponent')}." if counter else "."),
        "",
        *describe_start(),
    ]
    if counter:
        base = counter.get("equilibrium") or {}
        where = {"table": "at the table", "agent": "its own strategy"}.get(
            str(counter.get("measured_at")), "a model of it"
        )
        rows = [("this strategy", counter), ("the equilibrium that it started from", base)]
        lines += [
            "## What it wins and risks",
            "",
            f"In {unit}: what it wins from its opponent ({where}), and what a player who knows it won from it.",
            "",
            "| | wins | exploitable for |",
            "|---|---:|---:|",
            *(f"| {name} | {row['winnings']:.1f} | {row['exploitability']:.1f} |" for name, row in rows if row),
        ]
    return "\n".join(lines).rstrip() + "\n"
