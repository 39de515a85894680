"""Training: `loop` is the file to read first."""
