"""Looking after what is kept: history, audit, purge, export, backup, pinned tools, access tokens."""
