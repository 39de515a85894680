"""Settings: `schema` says what exists, `load` turns YAML into a checked `Config`."""
