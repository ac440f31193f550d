"""Measurements of Limpet beside the least that the same work can cost. `python -m bench` runs them."""
