"""How close models come to an agent: all that `evaluate`, `report`, `score` and `select` show is computed here.

    samples, truth   decisions to score on, with the agent's true probabilities where a file has them
    repeat_floor     what repeated situations tell about an agent whose probabilities are unknown
    baselines        what can be had without looking at the cards
    sizing           how close the amounts of raises are, in no-limit games
    scoring          every measure of every model, by street, with intervals; paired differences
    inspection       where a model fails, on which hands most, and whether the agent stays the same
    models           bundles and agents opened under the names that tables show
    evaluation       from names on the command line to scores
    learning         models trained again on growing parts of their data
    findings         all that one page shows of an evaluation
    winnings         what the players of logs won, plain and with the luck taken out
    hand_story       a logged hand replayed, with what agents would have played

Nothing here draws or prints: `pipeline.report` renders what comes out. The names below need only arrays; import the
other modules by name.
"""
