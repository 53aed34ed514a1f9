"""`postern webhooks …`, and the webhooks as a file."""
