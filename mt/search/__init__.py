"""From next-token distributions to outputs: greedy, beam and sampled search over any `Step`. Searches know no model and no text."""
