"""The ACPC protocol over sockets, both sides: the dealer and its plan, the client and its player."""
