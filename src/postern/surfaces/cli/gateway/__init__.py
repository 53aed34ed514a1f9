"""Which gateway a command goes to, and how it asks there."""
