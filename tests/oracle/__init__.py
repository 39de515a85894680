"""Obvious, slow versions to compare with: loops in float64, short enough to believe by reading."""
