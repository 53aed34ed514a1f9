"""A call as it arrived: its address, body, fields."""
