"""Recording calls: many in one transaction."""
