"""A bucketed strategy as a small file: probabilities in thirtieths, centroids, and how it was made.

In: a strategy (a row of fold, call and raise per decision, see `layout`), the centroids of its flop and turn
clusters, and facts about its making. Out: one xz file with a safetensors image inside and a JSON manifest beside
it, with the file's SHA-256, that is compared before anything is read. A probability becomes one of `LEVELS` + 1
steps; those under `LEAST` are dropped first (they are mostly what averaging kept of early iterations), which also
makes most rows pure.

Rows are stored node by node with buckets in order, where neighbours agree, so that they compress well.

Strategies of small games (Kuhn, Leduc) are stored the same way with whole probabilities and no buckets.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pipeline.models.bundle import contents
from pipeline.poker.game import Game, find_game, game_names
from pipeline.poker.rules import S_FINISHED
from pipeline.runtime.array_types import Array, Bytes
from pipeline.runtime.arrays import expect, parse_json, read_arrays, whole
from pipeline.runtime.errors import PipelineError
from pipeline.runtime.files import recover, replacing, sha256
from pipeline.solving.layout import Floats, Layout
from pipeline.solving.small import SmallGame

LEVELS = 30
"""Steps of a probability: thirds, fifths and halves are exact."""
LEAST = 0.04
MANIFEST = "manifest.json"
STRATEGY = "strategy.xz"
MOST_BUCKETS = 65535
HEADER = 1 << 16
"""no header of a strategy's arrays is longer"""
UNPACKING = 1 << 28
"""bytes of memory that xz may take"""


def quantise(strategy: Floats, least: float = LEAST) -> Bytes:
    """(rows, 2) steps of fold and raise; calling has the rest, so that the three sum to `LEVELS`.

    >>> quantise(np.array([[0.5, 0.5, 0.0], [0.01, 0.66, 0.33]], dtype=np.float32)).tolist()
    [[15, 0], [0, 10]]
    """
    kept = np.where(strategy < least, 0.0, strategy)
    kept = kept / kept.sum(axis=1, keepdims=True)
    out = np.rint(kept[:, (0, 2)] * LEVELS).astype(np.uint8)
    over = out.sum(axis=1) > LEVELS
    out[over, 1] = LEVELS - out[over, 0]
    return out


def probabilities(steps: Bytes) -> Floats:
    """(rows, 3) probabilities of quantised rows."""
    out = np.empty((len(steps), 3), dtype=np.float32)
    out[:, 0] = steps[:, 0] / np.float32(LEVELS)
    out[:, 2] = steps[:, 1] / np.float32(LEVELS)
    out[:, 1] = (LEVELS - steps.sum(axis=1)) / np.float32(LEVELS)
    return out


def transposed(layout: Layout, steps: Bytes, *, back: bool) -> Bytes:
    """Rows from bucket-major to node-major within each street and player, or back."""
    out = np.empty_like(steps)
    for r in range(layout.game.rounds):
        for p in range(layout.game.players):
            start, nodes, size = int(layout.offsets[r, p]), int(layout.counts[r, p]), layout.sizes[r]
            part = steps[start : start + nodes * size]
            shape = (nodes, size, 2) if back else (size, nodes, 2)
            out[start : start + nodes * size] = part.reshape(shape).swapaxes(0, 1).reshape(-1, 2)
    return out


@dataclass(frozen=True)
class Stored:
    """A stored strategy as it is read from its file."""

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
    from safetensors.numpy import save

    stored = transposed(layout, steps, back=False)
    image = save(
        {
            "fold": np.ascontiguousarray(stored[:, 0]),
            "raise": np.ascontiguousarray(stored[:, 1]),
            "flop": np.ascontiguousarray(flop, dtype=np.uint8),
            "turn": np.ascontiguousarray(turn, dtype=np.uint8),
        }
    )
    write_checked(folder, image, {"game": layout.game.name, "sizes": list(layout.sizes), "levels": LEVELS}, facts)


def write_checked(folder: Path, image: bytes, about: dict[str, Any], facts: dict[str, Any]) -> None:
    """Write a strategy's arrays and the manifest that vouches for them."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / STRATEGY) as beside:
        beside.write_bytes(lzma.compress(image, preset=6))
    manifest = {"version": 1, **about, "sha256": sha256(folder / STRATEGY), **facts}
    with replacing(folder / MANIFEST) as beside:
        beside.write_text(json.dumps(manifest, indent=2) + "\n")


def is_strategy(folder: Path) -> bool:
    """Whether a folder or zip file holds a stored strategy."""
    if not folder.exists():
        recover(folder)
    if not zipfile.is_zipfile(folder):
        return (folder / STRATEGY).is_file() and (folder / MANIFEST).is_file()
    try:
        with zipfile.ZipFile(folder) as archive:
            return {STRATEGY, MANIFEST} <= set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def is_portfolio(folder: Path) -> bool:
    """Whether a folder holds a portfolio (see `portfolio`): stored like a strategy, but of several."""
    try:
        return is_strategy(folder) and "members" in strategy_facts(folder)
    except PipelineError:
        return False


def strategy_files(folder: Path) -> dict[str, bytes]:
    """The manifest and the arrays of a stored strategy, as bytes."""
    return {name: bytes(data) for name, data in contents(folder, {MANIFEST, STRATEGY})}


def strategy_facts(folder: Path) -> dict[str, Any]:
    """What a strategy's manifest says, its keys checked."""
    try:
        manifest = parse_json(strategy_files(folder)[MANIFEST])
        str(manifest["sha256"]), str(manifest["game"]), manifest["version"], manifest["levels"]
        manifest["sizes"] = [whole(size, "a number of buckets", 1, MOST_BUCKETS) for size in manifest["sizes"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise PipelineError(f"{folder} has no readable {MANIFEST}: solve again or reinstall") from None
    if (manifest["version"], manifest["levels"]) != (1, LEVELS):
        raise PipelineError(f"{folder}: made by another version of this program; solve again")
    return dict(manifest)


def counter_facts(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """What a manifest says of how a counter-strategy was chosen; None of an equilibrium, `ValueError` if damaged."""
    kept = facts.get("counter")
    if kept is None:
        return None
    try:
        json.dumps(kept, allow_nan=False)
        for one in (kept, kept.get("equilibrium") or kept, *kept["curve"]):
            for key in ("share", "winnings", "exploitability"):
                if type(one[key]) not in (int, float):
                    raise ValueError(f"{key} is {str(one[key])[:40]}")
                float(one[key])  # a whole number may be beyond all numbers that can be written down
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"it does not say what the counter wins and risks ({error})") from None
    return dict(kept)


def strategy_game(folder: Path) -> Game:
    """The game that a stored strategy plays; reads no more than the manifest."""
    name = str(strategy_facts(folder)["game"])
    if name not in game_names():
        raise PipelineError(f"{folder} plays {name[:60]!r}, a game that does not come with this package: name its file")
    return find_game(name)


def save_small_strategy(folder: Path, game: Game, strategy: npt.NDArray[np.float64], facts: dict[str, Any]) -> None:
    """Write the strategy of a small game (see `small`): (rows, 3) probabilities."""
    from safetensors.numpy import save

    image = save({"mix": np.ascontiguousarray(strategy, np.float64)})
    write_checked(folder, image, {"game": game.name, "sizes": [], "levels": LEVELS}, facts)


def load_small_strategy(folder: Path, game: Game) -> npt.NDArray[np.float64]:
    """Read the strategy of a small game: (rows, 3) probabilities that sum to 1."""
    file, data = folder / STRATEGY, _checked(folder, strategy_facts(folder), game)
    small = SmallGame(game)
    rows = len(small.tree.states) * small.infos
    try:
        mix = expect(read_arrays(unpacked(data, 24 * rows + HEADER)), "mix", np.float64, (rows, 3), 0.0, 1.0)
    except (ValueError, lzma.LZMAError) as error:
        raise PipelineError(f"{file} does not hold a strategy of {game.name} ({error}): solve again") from None
    decisions = np.repeat(small.tree.states[:, S_FINISHED] == 0, small.infos)
    legal = np.repeat(small.tree.child >= 0, small.infos, axis=0)
    if np.abs(mix.sum(axis=1) - 1)[decisions].max() > 1e-6 or mix[~legal].any():
        raise PipelineError(f"{file} has probabilities that do not sum to 1 over legal actions: solve again")
    return np.asarray(mix)


def _checked(folder: Path, manifest: dict[str, Any], game: Game | None) -> bytes:
    """The strategy's file, if it is the one of the manifest and for the game."""
    if game is not None and game.name != manifest["game"]:
        raise PipelineError(f"{folder} plays {manifest['game']}, not {game.name}")
    data = strategy_files(folder).get(STRATEGY, b"")
    if hashlib.sha256(data).hexdigest() != manifest["sha256"]:
        raise PipelineError(
            f"{folder / STRATEGY} is missing or damaged (its checksum differs): solve again or reinstall"
        )
    return data


def load_strategy(folder: Path, game: Game | None = None) -> Stored:
    """Read a strategy; one that was damaged, or is not for `game`, is refused."""
    manifest = strategy_facts(folder)
    name, sizes, digest = str(manifest["game"]), tuple(manifest["sizes"]), str(manifest["sha256"])
    file, data = folder / STRATEGY, _checked(folder, manifest, game)
    layout = Layout(game or strategy_game(folder), sizes)
    try:
        arrays = read_arrays(unpacked(data, 2 * layout.rows + 16 * max(sizes) + HEADER))
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
    return Stored(layout, transposed(layout, steps, back=True), flop, turn, digest, facts)


def unpacked(packed: bytes, most: int) -> bytes:
    """An xz file's content; one that holds over `most` bytes, or that takes much memory to unpack, is refused."""
    unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=UNPACKING)
    data = unpacking.decompress(packed, max_length=most + 1)
    if len(data) > most or not unpacking.eof:
        raise ValueError(f"it unpacks to over {most:,} bytes or is cut short")
    return data


def _centroids(arrays: Mapping[str, Array], street: str) -> Bytes:
    """A street's centroids, (clusters, 8), weakest first as `clusters.nearest` needs them."""
    found = expect(arrays, street, np.uint8, (None, 8))
    sums = found.sum(axis=1, dtype=np.int64)
    if (sums[1:] < sums[:-1]).any():
        raise ValueError(f"the centroids of the {street} are not in order of strength")
    return found
