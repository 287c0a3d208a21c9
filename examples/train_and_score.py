"""Train a copy of an agent from logs and see how close it is.

    python examples/train_and_score.py [LOGS] [AGENT] [OUT]

Without arguments it copies the agent `teacher` of the bundled sample. The thesis's pattern is used because it needs no
strength tables; leave `pattern=` out for a much closer copy (the tables take a minute, once).
"""

import sys

import pipeline as p


def main(logs: str = "data/sample", agent: str = "teacher", out: str = "out/example") -> None:
    summary = p.ingest(logs, f"{out}/rows", strength=False)
    print(f"{summary.hands:,} hands, {summary.decisions:,} decisions, {summary.rejected:,} lines rejected")

    training = p.train(f"{out}/rows", f"{out}/copy", agent=agent, pattern="thesis")
    print(training.frame()[["street", "rows", "iterations", "seconds"]].to_string(index=False))

    scores = p.evaluate(f"{out}/rows", f"{out}/copy", agent=agent).frame()
    errors = scores.pivot_table(index="street", columns="model", values="error", sort=False)
    print((100 * errors).round(1).to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
