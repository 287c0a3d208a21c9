"""Analyse logs with pandas: how aggressive is each player, street by street?

python examples/analyse_logs.py [LOGS] [OUT]
"""

import sys

import pipeline as p


def main(logs: str = "data/sample", out: str = "out/example/analysis") -> None:
    p.ingest(logs, out, strength=False)
    frame = p.load(out).frame()

    by_street = frame.groupby(["agent", "street"], observed=True)["action"]
    shares = by_street.value_counts(normalize=True).unstack(fill_value=0)
    print((100 * shares.rename(columns={"f": "fold", "c": "call", "r": "raise"})).round(1).to_string())

    # a hand counts for a player who had something to decide in it
    hands = frame.drop_duplicates(["agent", "file", "hand"])
    won = hands.groupby("agent", observed=True)["result"].agg(["count", "mean"])
    print((won.assign(mbb_per_hand=100 * won["mean"]).drop(columns="mean")).round(0).to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
