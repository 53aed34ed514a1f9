"""`postern webhooks`, `export`, `apply` and `send-again`."""
