"""Where people and programs meet Postern: ingress, REST, MCP, CLI, console. Each is a thin table over the use cases."""
