"""Helpers of the tests: a real Postgres, a real browser, and the real program, each started here and ended here."""
