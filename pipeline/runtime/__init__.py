"""Infrastructure without any knowledge of poker, imported by every other package.

Read `errors` and `files` (safe writing), `arrays` (safetensors, checked) and `diskcache` (the user's cache folder),
then `kernels` (the decorator for compiled code), `stepping` (its debugger mode) and `numeric` (hashes and random
numbers), then `parallel` (threads), `progress` (callbacks) and `dask_cluster` (workers on other machines). `extras`
imports optional packages, `bundled` names the files that come with this one; `tabular` makes frames and HTML tables of
results, `pictures` draws them with matplotlib; `array_types` and `version` are a few lines that every room shares.
"""
