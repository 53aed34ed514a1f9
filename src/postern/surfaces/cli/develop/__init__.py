"""Commands for developers at their own machine."""
