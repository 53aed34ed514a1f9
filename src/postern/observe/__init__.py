"""Metrics, log lines, and one wide line for each call."""
