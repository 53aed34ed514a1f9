"""The tools of the gateway's operator."""
