"""What every other room stands on and what knows nothing of poker: errors, files, compiled code, threads, caches,
dask."""
