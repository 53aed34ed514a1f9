"""Whoever listens to calls at their own machine: who is there, what is handed to them, what they answer."""
