"""A call from its arrival to its answer."""
