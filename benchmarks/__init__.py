"""What prints the figures of docs/benchmarks.md: one module per topic, each with `run() -> list[Figure]`."""

from benchmarks._figures import Figure, bench_data

__all__ = ["Figure", "bench_data"]
