"""Alarms, and the incidents that they open."""
