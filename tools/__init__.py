"""Programs that make what the package ships, and measure its source; outside the package.

`tables` makes the tables in `pipeline/*/resources`, `portfolio` the counter-strategies of @adaptive, `house` measures
the source. Commands of the package make the rest: `pipeline solve holdem` the strategies of @teacher, `pipeline ingest`
and `pipeline train` the bundle in `models/teacher` (`models/README.md` has the two lines).
"""
