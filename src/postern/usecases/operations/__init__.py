"""What the operator of the gateway needs."""
