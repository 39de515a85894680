"""Forced decoding: what a model makes of outputs that are given, all positions at once: how probable they are, what they look at."""
