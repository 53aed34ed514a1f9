"""Reading what happened, live and afterwards, and what people put beside it."""
