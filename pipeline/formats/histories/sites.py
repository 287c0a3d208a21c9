"""Logs of poker sites (PokerStars and others) as hand histories, through PokerKit's own parsers.

PokerKit reads the text that sites let their players save; this package has no parser of its own for it. It is an extra:
`pip install 'acpc-pipeline[histories]'`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from pipeline.formats.histories.history import History, HistoryError
from pipeline.formats.histories.notation import parse_history
from pipeline.runtime.errors import PipelineError, nearest

SITES = (
    "absolute_poker",
    "full_tilt_poker",
    "ipoker_network",
    "ongame_network",
    "partypoker",
    "pokerstars",
)


def site_histories(text: str, site: str) -> Iterator[History | HistoryError]:
    """The hands of a site's log.

    Parameters: the log's text, and one of `SITES`.

    Returns each hand that PokerKit's parser understands, in its order, or the reason why it is none that this package
    reads (another variant, say). Hands that the parser itself does not understand are left out, as it leaves them out.
    """
    if site not in SITES:
        raise PipelineError(f"no parser for the logs of {site!r}{nearest(site, SITES)}")
    try:
        from pokerkit import HandHistory
    except ImportError:
        raise PipelineError("logs of sites need PokerKit: pip install 'acpc-pipeline[histories]'") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = list(getattr(HandHistory, f"from_{site}")(text))
    for hand in parsed:
        try:
            yield parse_history(hand.dumps())
        except HistoryError as error:
            yield error
