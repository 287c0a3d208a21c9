"""Models opened for scoring: bundles and built-in agents, each under a short name of its own.

A model is written as everywhere: a bundle's folder or zip file, with options, or a built-in `@agent`; a folder of
bundles stands for all of them. Out come `Opened` models. Tables show them under the name of their folder, with as much
of the path before it as tells them apart, beside what they were made with: pattern and algorithm. A bundle must be of
the data's game and labels (its features are checked as it is opened) and must have been trained with the same split, so
that no row it is scored on was ever trained on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pipeline.agents.names import bundle_options, is_bundle, resolve
from pipeline.dataset.manifest import Manifest
from pipeline.evaluation.scoring import Candidate
from pipeline.features.patterns import pattern_name
from pipeline.models.bundle import MANIFEST, Bundle, load_bundle
from pipeline.models.policy import Policy, check_game, load_policy
from pipeline.poker.game import Game
from pipeline.runtime.errors import PipelineError
from pipeline.training.run import data_fingerprint


@dataclass(frozen=True)
class Opened:
    """A model ready to be scored; built-in agents have no bundle."""

    candidate: Candidate
    text: str
    """what was typed"""
    bundle: Bundle | None = None


def bundles_in(text: str) -> list[str]:
    """A model's text as it is, or, for a folder of bundles, the path of each bundle in it."""
    path = Path(text)
    if text.startswith("@") or not path.is_dir() or (path / MANIFEST).is_file():
        return [text]
    found = sorted(str(inner) for inner in path.iterdir() if (inner / MANIFEST).is_file())
    if not found:
        raise PipelineError(f"{path} is no bundle and holds none: name what `train --out` wrote")
    return found


def algorithm_of(bundle: Bundle) -> str:
    """How a bundle's models were trained, such as `l-bfgs`; `chart` where it holds nothing else."""
    named = [str(part.about.get("algorithm", "?")) for part in bundle.parts if part.name != "chart"]
    return "+".join(dict.fromkeys(named)) or "chart"


def pattern_of(bundle: Bundle) -> str:
    """The pattern a bundle's features come from: the name of one that comes with the package, else `its own`."""
    texts = [str(part.about["pattern"]) for part in bundle.parts if part.about.get("pattern")]
    return "+".join(dict.fromkeys(pattern_name(text) for text in texts))


def _open(text: str, game: Game, trusted: bool) -> Opened:
    if not is_bundle(text):
        return Opened(Candidate(text, text, (), resolve(text, game, trusted=trusted)), text)
    path, options = bundle_options(text)
    bundle = load_bundle(path)
    check_game(bundle, path, game)
    if bundle.missing:
        raise PipelineError(bundle.describe_missing(path))
    streets = tuple(sorted({street for part in bundle.parts for street in part.streets}))
    if not streets:
        raise PipelineError(f"{path} holds no model: train it again")
    if len(streets) == game.rounds or options:
        player = load_policy(path, options, game=game)
        if not {"mode", "threshold"} & set(options):  # the whole mix, as the models have it
            player = replace(player, threshold=0.0, all_in=None)
    else:
        some = bundle.models[streets[0]]
        order = tuple(bundle.models.get(street, some) for street in range(game.rounds))
        player = Policy(path.name, game, order, sizes=bundle.sizes)
    candidate = Candidate(text, algorithm_of(bundle), bundle.agents, player, streets, pattern_of(bundle))
    return Opened(candidate, text, bundle)


def short_names(texts: Sequence[str]) -> list[str]:
    """The last parts of each path, as few as tell all of them apart; options and @agents stay as they are."""
    for count in range(1, 1 + max(len(Path(text).parts) for text in texts)):
        names = []
        for text in texts:
            path, colon, options = ("", "", text) if not is_bundle(text) else text.partition(":")
            short = "/".join(Path(path).parts[-count:]).removesuffix(".zip") if path else ""
            names.append(short + colon + options)
        if len(set(names)) == len(names):
            return names
    raise PipelineError(f"{next(name for name in names if names.count(name) > 1)} is given twice")


def open_models(texts: Sequence[str], game: Game, trusted: bool = False) -> list[Opened]:
    """Open the models that are named; a folder of bundles gives all of them.

    Parameters: `texts` as typed, `game` the game of the decisions to score on, `trusted` where a person wrote the
    names on the command line (see `agents.resolve`). Returns the models in that order.
    """
    opened = [_open(bundle, game, trusted) for text in texts for bundle in bundles_in(text)]
    names = short_names([one.text for one in opened])
    return [replace(one, candidate=replace(one.candidate, name=name)) for name, one in zip(names, opened, strict=True)]


def check_split(opened: Opened, manifest: Manifest, data: Path, all_rows: bool) -> None:
    """Refuse a bundle that may have been trained on the rows to score."""
    if opened.bundle is None:
        return
    about = opened.bundle.about
    if all_rows:
        if about.get("data") == data_fingerprint(manifest):
            raise PipelineError(f"{opened.text} was trained on {data}: leave out --all-rows to score the held-out rows")
        return
    split = manifest.options.validation
    trained = about.get("options", {}).get("validation") or []
    if trained != split:
        raise PipelineError(
            f"{opened.text} was trained with {_split_words(trained)} held out, {data} holds out "
            f"{_split_words(split)}: some of its rows may have been trained on; ingest with the same --validation, "
            "or add --all-rows if the model has never seen these logs"
        )


def _split_words(split: Sequence[str]) -> str:
    return f"the files {', '.join(split)}" if split else "one deal in ten"
