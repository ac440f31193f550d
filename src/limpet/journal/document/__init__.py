"""NOTES.md as a document: pure functions from text to text."""
