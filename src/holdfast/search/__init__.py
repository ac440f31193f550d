"""Search, pure: what the words of a text are, and in which order hits are shown. Stores keep the index."""
