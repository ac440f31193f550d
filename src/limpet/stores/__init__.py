"""The stores: the database drivers are imported here."""
