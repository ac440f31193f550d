"""How each framework's own loop is driven by a scripted model, with Limpet and without. Tests use these too."""
