"""Watching webhooks: alarms, the usual rhythm of calls, the channels by which people are told."""
