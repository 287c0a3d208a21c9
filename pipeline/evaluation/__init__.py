"""How close models come to an agent: all that `evaluate`, `report`, `score` and `select` show is computed here.

    samples, truth   decisions to score on, with the agent's true probabilities where a file has them
    repeat_floor     what repeated situations tell about an agent whose probabilities are unknown
    sizing           how close the amounts of raises are, in no-limit games
    scoring          every measure of every model, by street, with intervals; paired differences
    baselines        what can be had without looking at the cards
    evaluation       from names on the command line to opened models and scores
    selection        the thesis's three cycles, and which measure foretells who wins
    inspection       where a model fails, on which hands most, and whether the agent stays the same
    learning         models trained again on growing parts of their data
    findings         all that one page shows of an evaluation
    winnings         what the players of logs won, plain and with the luck taken out
    hand_story       a logged hand replayed, with what agents would have played

In go a dataset and bundles or agents, out come results with `rows()`, `json()` and `frame()`. Nothing here draws or
prints: `pipeline.report` renders what comes out.
"""
