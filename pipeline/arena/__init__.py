"""Seeded duplicate matches between agents, in process and thousands of hands at a time (`pipeline.arena.match`)."""
