"""Places that keep entries. Only here are database drivers imported."""
