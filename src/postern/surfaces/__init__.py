"""Where people and programs meet Postern: the HTTP server; REST, MCP, CLI and console, thin
tables over the use cases."""
