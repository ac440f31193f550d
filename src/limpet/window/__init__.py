"""The window: what a model sees. Pure: messages and counts go in, decisions and messages come out."""
