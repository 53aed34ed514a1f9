"""Tables, the one writer, the vault of secrets: the same code for SQLite and Postgres."""
