"""The data doctor: looks at corpora before training, and says what is wrong with them, where, and what helps."""
