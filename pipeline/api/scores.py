"""How close models are: `evaluate`, the page that `write_report` writes, and `identify`: who plays here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.api._arguments import AnyPath, Paths, Texts, agent_or_name, texts
from pipeline.runtime.bundled import locate
from pipeline.runtime.parallel import processors
from pipeline.runtime.tabular import ResultList

if TYPE_CHECKING:
    from pipeline.agents.protocol import Agent
    from pipeline.evaluation.evaluation import Evaluation
    from pipeline.evaluation.winnings import PlayerWinnings
    from pipeline.opponents.identify import Identification


def evaluate(
    data: AnyPath,
    *models: AnyPath | Agent,
    agent: Texts = (),
    game: str | None = None,
    all_rows: bool = False,
    allow_overlap: bool = False,
    probabilities: Paths = (),
    halves: bool = False,
    learning: bool = False,
    seed: int = 0,
) -> Evaluation:
    """Score models on the held-out decisions of the agents they imitate.

    Parameters
    ----------
    data : path
        A dataset's folder.
    *models : path, str or Agent
        Bundles, folders of bundles, built-in agents (`@call`), or any other object that plays.
    agent : str or sequence of str
        Score on these agents' decisions instead.
    game : str, optional
        The game's name, where the dataset holds several.
    all_rows : bool
        Score on all rows: for data that the models were not trained on.
    allow_overlap : bool
        Score on logs that a model was trained on all the same; the column `overlap` counts them.
    probabilities : path or sequence of paths
        Parquet files of the agents' true probabilities: they give floors, KL and total variation.
    halves : bool
        Train the first bundle on two halves of its deals, for `hands_to_tell_at_most`.
    learning : bool
        Train the first bundle on growing parts of its deals: `learning`, and `learning_curve` in the rows.
    seed : int
        Of the bootstrap that makes the intervals.

    Returns
    -------
    Evaluation
        `frame()` has a row per model, agent and street, baselines included; with several agents also rows of the agent
        `(all agents)`, for all their decisions together.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> hands = p.match("@call", "@chump:maniac", hands=200, log=f"{folder}/logs/call.maniac")
    >>> summary = p.ingest(f"{folder}/logs", f"{folder}/rows", strength=False)
    >>> found = p.evaluate(f"{folder}/rows", "@call", agent="call").frame()
    >>> float(found[found["model"] == "@call"]["error"].max())
    0.0
    """
    from pipeline.evaluation.evaluation import Scope, evaluate_models
    from pipeline.evaluation.retraining import train_again

    scope = Scope(texts(agent), all_rows, [locate(path) for path in texts(probabilities)], game, allow_overlap)
    evaluation = evaluate_models(Path(data), [agent_or_name(model) for model in models], scope, seed=seed)
    return train_again(evaluation, halves=halves, learning=learning, seed=seed)


def write_report(
    data: AnyPath,
    *models: AnyPath | Agent,
    out: AnyPath,
    agent: Texts = (),
    game: str | None = None,
    all_rows: bool = False,
    allow_overlap: bool = False,
    probabilities: Paths = (),
    title: str | None = None,
    seed: int = 0,
) -> Path:
    """Score models as `evaluate` does and write one HTML page that opens without a network.

    Parameters
    ----------
    data, *models, agent, game, all_rows, allow_overlap, probabilities, seed
        As for `evaluate`.
    out : path
        The page to write.
    title : str, optional
        The page's title.

    Returns
    -------
    Path
        `out`.

    Examples
    --------
    >>> import pipeline as p
    >>> p.write_report("out/rows", "out/teacher", out="out/teacher.html")  # doctest: +SKIP
    PosixPath('out/teacher.html')
    """
    from pipeline.evaluation.findings import collect_findings
    from pipeline.report.pages import build_page
    from pipeline.runtime.files import write_text

    evaluation = evaluate(
        data,
        *models,
        agent=agent,
        game=game,
        all_rows=all_rows,
        allow_overlap=allow_overlap,
        probabilities=probabilities,
        seed=seed,
    )
    write_text(Path(out), build_page(collect_findings(evaluation, title=title, seed=seed)))
    return Path(out)


def identify(
    logs: Paths,
    *among: AnyPath | Agent,
    player: Texts = (),
    spectator: bool = False,
    check: bool = False,
    allow_overlap: bool = False,
    game: str | None = None,
) -> ResultList[Identification]:
    """Return how likely each of some agents is to be the one who plays under each name in logs.

    Parameters
    ----------
    logs : path or sequence of paths
        Files, folders, glob patterns or archives, or one dataset.
    *among : path, str or Agent
        Who it may be, at least two: copies of players, or built-in agents.
    player : str or sequence of str
        Whose posterior; everybody's by default.
    spectator : bool
        Use only the cards that a spectator sees; others are summed out.
    check : bool
        Count how often players whose name is that of an agent would be named right.
    allow_overlap : bool
        Count that although an agent was trained on these logs.
    game : str, optional
        A `.game` file or the name of a built-in game, for all logs.

    Returns
    -------
    ResultList of Identification
        `posterior` by agent, `log_likelihood`, `hands`, and `after`: the posterior after the first hands.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> hands = p.match("@call", "@raise", hands=20, log=f"{folder}/logs/a")
    >>> [result.likeliest for result in p.identify(f"{folder}/logs", "@call", "@raise", player=["call", "raise"])]
    ['@call', '@raise']
    """
    from pipeline.opponents.identify import identify_players

    agents = [agent_or_name(agent) for agent in among]
    identified = identify_players(
        texts(logs),
        agents,
        players=texts(player),
        spectator=spectator,
        check=check,
        allow_overlap=allow_overlap,
        game=game,
    )
    return ResultList(identified)


def score(
    logs: Paths, *, game: str | None = None, probabilities: AnyPath | None = None, workers: int | None = None
) -> ResultList[PlayerWinnings]:
    """Rate the players of logs: winnings per hand, plain and, where all hole cards are known, with the luck taken out.

    Parameters
    ----------
    logs : path or sequence of paths
        Files, folders, glob patterns or archives, or one dataset.
    game : str, optional
        A `.game` file or the name of a built-in game, for all logs.
    probabilities : path, optional
        The players' true probabilities (Parquet): takes the luck of their own dice out too.
    workers : int, optional
        Threads; all processors by default.

    Returns
    -------
    ResultList of PlayerWinnings
        For each player `hands`, `winnings` (`plain` and `adjusted`, each with its interval) and `doubtful`: whether
        the probabilities cannot be those that were played, so that the adjusted result is wrong.

    Examples
    --------
    >>> import pipeline as p
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> hands = p.match("@raise", "@fold", hands=20, log=f"{folder}/raise.fold")
    >>> [(player.agent, player.winnings.value) for player in p.score(folder)]
    [('raise', 750.0), ('fold', -750.0)]
    """
    from pipeline.evaluation.winnings import score_dataset
    from pipeline.ingestion.run import opened_dataset

    threads = workers or processors()
    truth = None if probabilities is None else Path(probabilities)
    with opened_dataset(texts(logs), game, workers=threads) as data:
        return ResultList(score_dataset(data, truth, threads=threads))
