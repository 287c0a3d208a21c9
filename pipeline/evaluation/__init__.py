"""How close models come to an agent: computes the results that `evaluate`, `report` and `match --from` show.

    samples, truth   decisions to score on, with the agent's true probabilities where a file has them
    repeat_floor     floors estimated from repeated situations, where an agent's probabilities are unknown
    sizing           how close the amounts of raises are, in no-limit games
    scoring          every measure of every model, by street, with intervals; paired differences
    baselines        mixes counted without looking at the cards, to compare models with
    evaluation       from names on the command line to opened models and scores
    inspection       where a model fails, on which hands most, and whether the agent stays the same
    hands_to_tell    hands that a perfect detector needs to tell a copy from its source
    retraining       models trained again on parts of their deals: learning curves, copies from two halves
    findings         the contents of the page that shows an evaluation
    pictures         scores drawn for papers
    winnings         winnings of the players of logs, plain and with the luck taken out
    leaks            where a player loses chips, compared with a reference agent
    hand_story       a logged hand replayed, with what agents would have played

In go a dataset and bundles or agents, out come results with `rows()`, `json()` and `frame()`. Nothing here draws or
prints: `pipeline.report` renders the results.
"""
