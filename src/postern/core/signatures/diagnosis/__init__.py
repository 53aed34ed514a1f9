"""Why a signature does not match, and what would make it match: asked by people, never on a call's path."""
