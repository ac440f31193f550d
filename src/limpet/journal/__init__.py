"""NOTES.md as a document, pure: take it apart with positions, add and change entries, and leave every other byte alone.

scan (lines, headings, what is hidden) → entries (what stands in the sections) → edit (a new text), and beside them
lint, recover, evidence, rotate, merge and clearing. Texts are `str`; bytes that are not UTF-8 come in and go out as
surrogate escapes, so that the file is the same byte for byte.
"""
