"""Variance reduction: the luck of cards and dice taken out of finished hands without changing their mean.

In: hands with all hole cards, and the agents' probabilities where they are known. Out: adjusted payoffs. Read `records`
(the input) first, then `terms` (the control variates), `equities` and `headsup` (what they are computed from), and
`estimator` (the weights, and the adjusted results).
"""
