"""Every bitext format, in and out: readers yield `Pair`s with their origins, documents come back with the translations in place."""
