"""Which pairs are kept: the filters, what they look at (traits, scripts, languages, repetitions), and the table of what they dropped."""
