"""What can be seen from outside: metrics, log lines, and one wide line for each call."""
