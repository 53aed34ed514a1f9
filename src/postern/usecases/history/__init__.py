"""Reading what happened, live and afterwards."""
