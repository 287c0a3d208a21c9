"""Models of decisions: their kinds, the bundle that stores them, and the policy that plays one.

A bundle's folder comes in, probabilities for rows of observations come out; `training` fits the models. Read `kinds`,
`bundle` (with `artifacts`, its checked files, and `trained_on`, the rows behind it) first, then the kinds: `loglinear`
(with `softmax`), `charts`, `prior` (priors times features), `trees` (with `matrix`), `classes` (learned hand classes),
`blend`. `policy` makes a player of a bundle, with the amounts of its raises from `sizes`; `measures` scores
probabilities; `shipping` copies a bundle to where it plays, with the package that `wheel` packs.
"""
