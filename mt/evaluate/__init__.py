"""Judging translations: `metrics` gives scores with their signatures and intervals."""
