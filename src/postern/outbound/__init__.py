"""Requests that the gateway sends: schedules, HTTP engines, messages about incidents. No URL is trusted."""
