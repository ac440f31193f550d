"""The table of operations: what each is called, takes and gives, and where its behaviour lives."""
