"""Judge history from files: one reader per format, all yielding the same records, and the import that stores them."""
