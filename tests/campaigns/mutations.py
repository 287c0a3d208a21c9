"""Harm done to bundles, strategies, charts and patterns, structure by structure, and what became of each.

Run in a program of its own (`python tests/campaigns/torture.py mutations --only KIND --count N --seed S`), so that a
crash of compiled code or a lack of memory shows as this program's end. Of every harmed file only two outcomes are
allowed: it is refused with a sentence (`PipelineError`), or it is accepted and says what it said before. Where the
checksums are made again after the harm, as an attacker would, a file may also be accepted as another model, if all it
says is probabilities of legal actions. An outcome that is not allowed raises; the harmed files are kept and named,
beside the command that repeats it. Datasets, caches and hand histories are in `mutations_of_data`.
"""

from __future__ import annotations

import hashlib
import json
import random
import resource
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save
from training_rows import decisions

from pipeline.features.patterns import find_pattern, parse_pattern
from pipeline.models.bundle import load_bundle
from pipeline.models.charts import parse_chart
from pipeline.models.policy import load_policy, masked
from pipeline.poker.game import find_game
from pipeline.runtime.arrays import read_arrays
from pipeline.runtime.errors import PipelineError
from pipeline.solving.layout import Layout
from pipeline.solving.strategy import load_strategy, save_strategy

FIXTURES = Path(__file__).parents[1] / "fixtures" / "bundles"
MEMORY = 6 << 30
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2, 3, 4, 255, 2**31, 2**63, -(2**63), 10**30, 0.5, 1e308),
    *("", "x", "chart", "loglinear", "../x", [], {}, [[]], [-1], ["f"], {"x": 1}),
)


def deep() -> Any:
    """A value nested more deeply than any reader follows."""
    found: Any = []
    for _ in range(900):
        found = [found]
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, one in inside for place in places(one, (*path, key))]


def harm_json(value: Any, luck: random.Random) -> Any:
    """Replace, delete or double one value somewhere inside."""
    value = json.loads(json.dumps(value))
    *way, last = luck.choice(places(value))
    owner = value
    for key in way:
        owner = owner[key]
    kind = luck.randrange(5)
    if kind == 0:
        del owner[last]
    elif kind == 1 and isinstance(owner, list):
        owner.insert(last, owner[last])
    elif kind == 2:
        owner[last] = (
            deep() if luck.random() < 0.1 else owner[luck.choice(list(owner))] if isinstance(owner, dict) else 0
        )
    else:
        owner[last] = luck.choice(VALUES)
    return value


def harm_array(array: np.ndarray, luck: random.Random) -> np.ndarray:
    """Another type, shape or order, or a value that is out of place."""
    array, kind = array.copy(), luck.randrange(10)
    if kind == 0:
        return array.astype(luck.choice(["<f8", "<f4", "<i8", "<u8", "<i4", "<u2", "u1"]))
    if kind == 1:
        return array.reshape(luck.choice([(-1,), (-1, 1), (1, -1), (1, *array.shape)]))
    if kind == 2 and array.ndim:
        keep = luck.randrange(max(1, array.shape[0]))
        return array[:keep]
    if kind == 3 and array.ndim > 1:
        return array[:, : luck.randrange(array.shape[1])]
    if kind == 4:
        return np.concatenate([array, array]) if array.ndim else array
    if kind == 5 and array.ndim:
        return array[::-1]
    if kind == 6:
        return array.view("u1" if array.dtype.itemsize == 1 else f"<u{array.dtype.itemsize}")
    if array.size:
        limits = np.finfo(array.dtype) if array.dtype.kind == "f" else np.iinfo(array.dtype)
        odd = [
            limits.min,
            limits.max,
            0,
            1,
            min(len(array), limits.max),
            *([np.nan, np.inf, -1] if array.dtype.kind == "f" else []),
        ]
        odd += [-1, -2, -len(array) - 1] if array.dtype.kind == "i" else []
        for _ in range(luck.choice([1, 1, 3, array.size])):
            array.flat[luck.randrange(array.size)] = np.array(luck.choice(odd), dtype=object).astype(array.dtype)
    return array


def harm_bytes(data: bytes, luck: random.Random) -> bytes:
    """A flipped bit (half of them among the first bytes, where headers are), a cut, or more bytes."""
    kind = luck.randrange(4)
    if kind == 0:
        return data[: luck.randrange(len(data))]
    if kind == 1:
        return data + bytes(luck.randrange(256) for _ in range(luck.randrange(1, 64)))
    at = luck.randrange(min(len(data), 400) if kind == 2 else len(data))
    return data[:at] + bytes([data[at] ^ 1 << luck.randrange(8)]) + data[at + 1 :]


def harm_file(data: bytes, luck: random.Random) -> bytes:
    """A safetensors file with one array harmed, missing or under another's name, or with harmed or shared bytes."""
    arrays = dict(read_arrays(data))
    name, kind = luck.choice(sorted(arrays)), luck.randrange(9)
    if kind == 0:
        return harm_bytes(data, luck)
    if kind == 8:
        return share_bytes(data, luck)
    if kind == 1:
        del arrays[name]
    elif kind == 2:
        arrays[luck.choice(sorted(arrays))] = arrays[name]
    else:
        arrays[name] = harm_array(arrays[name], luck)
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def share_bytes(data: bytes, luck: random.Random) -> bytes:
    """A safetensors file in which an array begins inside the bytes of another one, or is another one."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    first, second = (header[name] for name in luck.choices(sorted(set(header) - {"__metadata__"}), k=2))
    low, high = second["data_offsets"]
    begin = luck.randrange(
        *sorted((first["data_offsets"][0], max(first["data_offsets"][0] + 1, first["data_offsets"][1])))
    )
    if luck.random() < 0.5:
        second |= first
    else:
        second["data_offsets"] = [begin, begin + high - low]
    written = json.dumps(header).encode()
    return len(written).to_bytes(8, "little") + written + data[8 + size :]


def harm_bundle(files: dict[str, bytes], luck: random.Random) -> tuple[dict[str, bytes], bool]:
    """A bundle's files after one harm, and whether their checksums were made again."""
    files, again = dict(files), luck.random() < 0.7
    name = luck.choice(sorted(name for name in files if not name.endswith(".txt")))
    if name == "manifest.json":
        manifest = json.loads(files[name])
        text = json.dumps(harm_json(manifest, luck)).encode()
        files[name] = harm_bytes(text, luck) if luck.random() < 0.1 else text
        return files, True
    files[name] = harm_file(files[name], luck)
    if again:
        manifest = json.loads(files["manifest.json"])
        manifest["files"][name] = hashlib.sha256(files[name]).hexdigest()
        files["manifest.json"] = json.dumps(manifest).encode()
    return files, again


def spoken(path: Path) -> list[np.ndarray]:
    """What a bundle's models say, masked as play does; every row must be probabilities of legal actions."""
    game, rows, _, _ = decisions(300)
    bundle, found = load_bundle(path), []
    for part in bundle.parts:
        for street in part.streets:
            some = rows[rows["street"] == street][:40]
            chances = masked(part.model.predict(some), some["legal"])
            legal = some["legal"][:, None] >> np.arange(chances.shape[1]) & 1 == 1
            assert np.isfinite(chances).all()
            assert np.abs(chances.sum(axis=1) - 1).max() < 1e-9
            assert (chances[~legal] == 0).all()
            found.append(chances)
    if set(bundle.models) == set(range(game.rounds)) and bundle.game == game:
        load_policy(path, {}, game=game)
    return found


def attack_bundle(luck: random.Random, folder: Path) -> str:
    """Harm one of the bundled fixtures, as a folder or as a zip file."""
    kind = luck.choice(["loglinear", "trees"])
    with zipfile.ZipFile(FIXTURES / f"{kind}.zip") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    harmed, again = harm_bundle(files, luck)
    path = folder / "b"
    if luck.random() < 0.5:
        path.mkdir()
        for name, data in harmed.items():
            (path / name).write_bytes(data)
    else:
        path = folder / "b.zip"
        with zipfile.ZipFile(path, "w", luck.choice([0, 8])) as archive:
            for name, data in harmed.items():
                archive.writestr(name, data)
        if luck.random() < 0.2:
            path.write_bytes(harm_bytes(path.read_bytes(), luck))
    try:
        said = spoken(path)
    except PipelineError:
        return "refused"
    before = spoken(FIXTURES / f"{kind}.zip")
    equal = len(said) == len(before) and all(map(np.array_equal, said, before))
    assert equal or again, f"a damaged {kind} bundle was accepted and says something else"
    return "equal" if equal else "another model"


def attack_strategy(luck: random.Random, folder: Path) -> str:
    """Harm a stored strategy of a small game: its manifest or its arrays, checksum made again."""
    import lzma

    layout = Layout(find_game("leduc.limit.2p"), (3, 6))
    steps = np.zeros((layout.rows, 2), np.uint8)
    steps[:, 0] = np.arange(layout.rows) % 31
    centroids = np.arange(24, dtype=np.uint8).reshape(3, 8)
    save_strategy(folder, layout, steps, flop=centroids, turn=centroids, facts={})
    manifest = json.loads((folder / "manifest.json").read_text())
    if luck.random() < 0.4:
        manifest = harm_json(manifest, luck)
    else:
        data = harm_file(lzma.decompress((folder / "strategy.xz").read_bytes()), luck)
        packed = lzma.compress(data)
        (folder / "strategy.xz").write_bytes(harm_bytes(packed, luck) if luck.random() < 0.2 else packed)
        manifest["sha256"] = hashlib.sha256((folder / "strategy.xz").read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    try:
        stored = load_strategy(folder)
    except PipelineError:
        return "refused"
    assert stored.steps.shape == (stored.layout.rows, 2)
    assert (stored.steps.sum(axis=1) <= 30).all()
    return "equal" if np.array_equal(stored.steps, steps) else "another model"


def harm_text(text: str, luck: random.Random) -> str:
    """Letters, words or lines lost, doubled or changed, or something nested deeply."""
    lines = text.splitlines()
    at, kind = luck.randrange(len(lines)), luck.randrange(5)
    line = lines[at] or " "
    if kind == 0:
        lines[at] = line[: luck.randrange(len(line))]
    elif kind == 1:
        place = luck.randrange(len(line))
        lines[at] = line[:place] + luck.choice("\0(){}[]*,=-9é∞\t#%'\\") + line[place:]
    elif kind == 2:
        lines.insert(at, line)
    elif kind == 3:
        lines[at] = luck.choice(
            ["(" * 5000, "betting *" * 3000 + "low", "[" + "x" * 5000, "-" * 9000 + "1", "nan", "cluster(1e9)"]
        )
    else:
        words = line.split()
        luck.shuffle(words)
        lines[at] = " ".join(words)
    return "\n".join(lines)


def attack_pattern(luck: random.Random, folder: Path) -> str:
    """Harm the text of a pattern."""
    return read_again(parse_pattern, find_pattern(luck.choice(["default", "thesis"])).source, luck, folder)


def attack_chart(luck: random.Random, folder: Path) -> str:
    """Harm the text of a chart."""
    rows = ("r", "AKs", "1 2 3"), ("c", "22", "0 5 1"), ("rr", "T9o", "4 4 4")
    text = "# situation class f c r\n" + "\n".join(" ".join(row) for row in rows)
    return read_again(parse_chart, text, luck, folder)


def read_again(read: Callable[[str], object], text: str, luck: random.Random, folder: Path) -> str:
    """What becomes of a harmed text."""
    harmed = harm_text(text, luck)
    (folder / "text").write_text(harmed)
    try:
        read(harmed)
    except PipelineError:
        return "refused"
    return "another model"


def attacks() -> dict[str, Callable[[random.Random, Path], str]]:
    """All attacks by what they harm."""
    import mutations_of_data as data
    import mutations_of_play as play
    import mutations_of_solving as solving

    return {
        "bundle": attack_bundle,
        "strategy": attack_strategy,
        "pattern": attack_pattern,
        "chart": attack_chart,
        "dataset": data.attack_dataset,
        "manifest": data.attack_manifest,
        "cache": data.attack_cache,
        "history": data.attack_history,
        "tar": data.attack_tar,
        "mixture": play.attack_mixture,
        "counter": play.attack_counter,
        "hands": play.attack_hands,
        "request": play.attack_request,
        "portfolio": solving.attack_portfolio,
        "checkpoint": solving.attack_checkpoint,
    }


def campaign(count: int, seed: int, only: Sequence[str] = (), kept: Path = Path("out/torture")) -> dict[str, int]:
    """Make `count` attacks of each kind under a limit of memory; how they ended."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("error")
    outcomes: Counter[str] = Counter()
    for name, attack in attacks().items():
        if only and name not in only:
            continue
        for number in range(seed, seed + count):
            folder = Path(tempfile.mkdtemp())
            try:
                outcomes[f"{name}: {attack(random.Random(number), folder)}"] += 1
            except BaseException:
                target = kept / f"{name}-{number}"
                shutil.rmtree(target, ignore_errors=True)
                shutil.copytree(folder, target)
                again = f"python tests/campaigns/torture.py mutations --only {name} --count 1 --seed {number}"
                print(f"the harmed files are in {target}; repeat it by: {again}", file=sys.stderr)
                raise
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return dict(sorted(outcomes.items()))
