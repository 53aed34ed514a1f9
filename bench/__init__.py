"""Measurements, each run by one command. The machine decides the digits; believe the ratios within one run."""
