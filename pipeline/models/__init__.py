"""What predicts: the kinds of models, the bundle that holds them, and what is shipped (`training` fits them)."""
