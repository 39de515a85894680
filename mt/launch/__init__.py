"""From a config to a run: what it reads and makes, what it will take, where it goes on, and how it ends."""
