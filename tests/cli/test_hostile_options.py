"""Every option of every command with values that no command asks for: one sentence or a result, never a traceback.

The options come from the commands themselves, so that a new one is tried without a change here. Each command gets
words (`BASE`) that let it end soon: small games, few hands, a server's port that is taken.
"""

from __future__ import annotations

import io
import re
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import click
import pytest
from generated_docs import all_commands

from pipeline.cli.main import main

GAME = "kuhn.limit.2p"
VALUES = ("-1", str(2**64), "nan", "inf", "", "a\nb", "{directory}")
SECONDS = 240
"""after which a command counts as one that hangs; the first one of its kind may compile for a minute"""
BASE = {
    "ingest": "ingest {logs} --out {out}/rows --game kuhn.limit.2p --no-strength",
    "export": "export --data {rows} --format acpc --out {out}/back.log",
    "info": "info {rows}",
    "query": "query 'SELECT 1' --data {rows}",
    "profile": "profile --data {rows}",
    "leaks": "leaks {logs} --agent random --reference @call --game kuhn.limit.2p",
    "identify": "identify {logs} --among @call --among @random",
    "train": "train --data {rows} --agent random --algorithm majority --out {out}/bundle",
    "evaluate": "evaluate {bundle} --data {rows}",
    "report": "report {bundle} --data {rows} --out {out}/page.html",
    "match": "match @call @random --hands 4 --game kuhn.limit.2p",
    "tournament": "tournament @call @random --hands 4 --game kuhn.limit.2p",
    "play": "play @call --hands 1 --game kuhn.limit.2p",
    "web": "web @call --port {busy} --no-open",
    "predict": "predict @call MATCHSTATE:0:0::Ks| --game kuhn.limit.2p",
    "connect": "connect 127.0.0.1 {closed} @call",
    "deal": "deal kuhn.limit.2p A B --hands 1 --start-ms 1",
    "ship": "ship {bundle} --out {out}/bot",
    "solve kuhn": "solve kuhn --iterations 2",
    "solve leduc": "solve leduc --iterations 2",
    "solve preflop": "solve preflop --below 100000",
    "solve spot": "solve spot --board 2c7d9hTsJs --range AA --range KK --pot 2 --stack 1 --iterations 1",
    "solve holdem": "solve holdem --out {out}/teacher --sizes 2,2,2 --deals 1 --game kuhn.limit.2p",
    "counter": "counter --against @call --game kuhn.limit.2p --method best --out {out}/counter",
    "demo": "demo --size small --sample {empty}",
    "cache": "cache",
    "show chart": "show chart {bundle}",
    "show features": "show features {bundle} MATCHSTATE:0:0::Ks|",
    "show hand": "show hand {logs}/random.call.0.0.log 1 @call",
}
"""words for each command; `{closed}` is a port on which nobody listens, `{busy}` one that is taken"""


def options() -> Iterator[tuple[str, click.Option]]:
    """Return every option that takes a value, with the command's words."""
    for words, command in all_commands():
        for option in command.params:
            if words in BASE and isinstance(option, click.Option) and not option.is_flag:
                yield words, option


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Logs, a dataset and a bundle of a small game, an empty folder, a port that is taken and a closed one."""
    folder = tmp_path_factory.mktemp("hostile")
    logs, rows, bundle = folder / "logs", folder / "rows", folder / "bundle"
    main(["match", "@random", "@call", "--sample", str(logs), "--hands", "80", "--game", GAME])
    main(["ingest", str(logs), "--out", str(rows), "--no-strength"])
    main(["train", "--data", str(rows), "--agent", "random", "--algorithm", "frequency", "--out", str(bundle)])
    (folder / "empty").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as busy:
        with socket.create_server(("127.0.0.1", 0)) as other:
            closed = other.getsockname()[1]
        yield {
            **{name: str(folder / name) for name in ("logs", "rows", "bundle", "empty")},
            "busy": str(busy.getsockname()[1]),
            "closed": str(closed),
        }


class Hung(BaseException):
    """A command took too long; no command catches this."""


def hung(number: int, frame: FrameType | None) -> None:
    raise Hung(f"the command took more than {SECONDS} s")


def outcome(words: list[str]) -> int:
    """Return the exit status of a command; whatever it raises but the end of the program is its traceback."""
    signal.signal(signal.SIGALRM, hung)
    signal.alarm(SECONDS)
    try:
        main(words)
    except SystemExit as end:
        return int(str(end.code))
    finally:
        signal.alarm(0)
    return 0


def test_every_command_has_words_here() -> None:
    leaves = {words for words, command in all_commands() if not isinstance(command, click.Group)}
    assert leaves - set(BASE) == {"cache clear", "cache build"}  # they have no option with a value
    assert set(BASE) - leaves == {"cache"}


@pytest.mark.long
@pytest.mark.parametrize(("words", "option"), list(options()), ids=lambda value: getattr(value, "name", value))
def test_an_option_takes_any_value_with_a_result_or_a_sentence(
    words: str,
    option: click.Option,
    place: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "directory"
    own.mkdir()
    (own / "mine.txt").write_text("mine", encoding="utf-8")
    known = {**place, "out": str(tmp_path / "out")}
    base = [word.strip("'").format(**known) for word in re.findall(r"'[^']*'|\S+", BASE[words])]
    for value in VALUES:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        monkeypatch.setattr("sys.stdin", io.StringIO(""))
        typed = value.format(directory=own)
        capsys.readouterr()
        status = outcome([*base, option.opts[0], typed])
        error = capsys.readouterr().err
        lines = [line for line in error.splitlines() if not line.startswith(("compiled", "compiling"))]
        sentences = [line for line in lines if line.lower().startswith("error: ")]
        assert status in (0, 1, 2), (typed, error)
        assert len(sentences) == (status > 0), (typed, error)
        assert not sentences or lines[-1] == sentences[0], (typed, error)
        assert "Traceback" not in error, (typed, error)
        assert (own / "mine.txt").read_text(encoding="utf-8") == "mine", (typed, "destroyed a folder")
