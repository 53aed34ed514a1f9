"""The console: server-rendered pages over the same use cases that every other surface stands on."""
