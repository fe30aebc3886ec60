"""Format primitives that keep positions: each returns values with the place where they stand."""
