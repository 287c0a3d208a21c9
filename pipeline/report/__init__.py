"""Pages, pictures and terminal tables of what was computed elsewhere, mostly in `pipeline.evaluation`."""
