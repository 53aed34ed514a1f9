"""Commands for whoever runs a gateway."""
