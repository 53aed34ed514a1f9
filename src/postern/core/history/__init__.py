"""The parts of a call that are kept."""
