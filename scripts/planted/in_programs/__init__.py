"""The folder that is put on the PYTHONPATH of programs."""
