"""How a transaction says beforehand that it will write."""

WRITING = "evenhand_writing"
"""Execution option that makes a SQLite transaction take the write lock when it begins."""
