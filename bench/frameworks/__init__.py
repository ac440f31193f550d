"""How each framework's own loop is driven by a scripted model, with Holdfast and without. Tests use these too."""
