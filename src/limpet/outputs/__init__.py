"""Big tool results: kept whole outside the window, read back in parts, and counted."""
