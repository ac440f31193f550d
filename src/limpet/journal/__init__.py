"""The journal: NOTES.md, a Markdown file that people and agents write together.

`document` is pure: markup (lines, headings, escapes) → entries (typed, with positions) → edit (a new text), and beside
them lint, recover, quotes, merge and removal. `file` reads and replaces the file while people edit it; `recover`,
`write` and `check` are the operations. Texts are `str`; bytes that are not UTF-8 are surrogate escapes, so that the
file stays the same byte for byte.
"""
