"""A whole bot in ten lines: pipeline match python:./examples/careful.py:Careful @call --hands 2000

docs/playing.md lists what a bot sees.
"""


class Careful:
    """Folds to large bets, raises with a pair or an ace when it may, calls with the rest."""

    def __init__(self, game):
        self.game = game

    def act(self, situation):
        ranks = situation.hole[::2]
        strong = "A" in ranks or ranks[0] == ranks[1]
        if situation.to_call > situation.pot / 2 and not strong:
            return "f"
        return "r" if strong and "r" in situation.legal else "c"
