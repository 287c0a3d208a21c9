"""Text and hands: lines of ACPC logs (`acpc`) and hand histories (`histories`)."""
