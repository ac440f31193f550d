"""Faults that are really injected, as goals: each says what it promises, how often it was tried, and what came out."""
