"""The database: connection, tables, migrations, and the one writer."""
