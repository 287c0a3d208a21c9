"""Poker itself: cards, betting rules, showdowns, game files and hand strength; knows nothing of datasets or models.

In go cards, actions and `.game` files; out come legal actions, payoffs, values of hands and their strength. `cards` has
numbers and ranking, `showdown` the one definition of who wins, `rules` the betting as kernels, `game` a game file and a
hand as an immutable `State`, `betting_tree` all betting of a limit game. `card_sets` walks over boards, `allin` settles
all-in hands by expectation, `starting_hands` has the 169 classes. `made_hands` and `spoken` are the words of players;
`strength/` has exact hand strength and hand clusters.
"""
