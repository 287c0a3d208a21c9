"""Log files and archives in, a dataset of validated decisions out, every line accounted for (see `run`)."""
