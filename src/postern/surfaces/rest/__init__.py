"""The management API: a table from paths to use cases, and what makes its description true."""
