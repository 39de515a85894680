"""Runs as models of other programs."""
