"""Text of hands and hands as objects: lines of ACPC logs in `acpc`, poker hand histories (PHH) in `histories`."""
