"""The parts of a running process."""
