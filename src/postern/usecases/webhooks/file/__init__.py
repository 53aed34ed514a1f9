"""The file that `export` writes and `apply` takes."""
