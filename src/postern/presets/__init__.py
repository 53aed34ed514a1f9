"""The 22 senders Postern knows: one TOML file each, and the loader."""
