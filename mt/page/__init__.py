"""What every HTML page of this program is made of: a look, elements that escape their text, and charts. Knows nothing of translation."""
