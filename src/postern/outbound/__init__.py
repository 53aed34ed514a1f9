"""Requests that the gateway itself sends: fetching schedules, calling HTTP engines. Nothing here trusts a
URL."""
