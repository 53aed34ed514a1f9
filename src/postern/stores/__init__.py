"""Where everything is kept: tables, the one writer, the vault of secrets. SQLite and Postgres, the same
code."""
