"""The triggers that make tables append-only, for both databases."""

from collections.abc import Sequence

from sqlalchemy import Connection

_SQLITE_REFUSAL = "RAISE(ABORT, '{table} is append-only: record a new row instead')"
_ITEM_REFUSAL = "RAISE(ABORT, 'an item is immutable: a changed text is another item')"


def protect(connection: Connection, table: str, *, unique: Sequence[Sequence[str]]) -> None:
    """Refuse to change or delete rows of `table`.

    Args:
        connection: Where to create the triggers.
        table: The table's name.
        unique: Its unique column sets, primary key included. SQLite's INSERT OR REPLACE deletes the row it replaces
            without firing delete triggers, so an insert that meets an existing key is refused beforehand.
    """
    statements = _sqlite(table, unique) if connection.dialect.name == "sqlite" else _postgresql(table)
    for statement in statements:
        connection.exec_driver_sql(statement)


def _sqlite(table: str, unique: Sequence[Sequence[str]]) -> list[str]:
    refusal = _SQLITE_REFUSAL.format(table=table)
    return [
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} BEGIN SELECT {refusal}; END",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} BEGIN SELECT {refusal}; END",
        _sqlite_no_replace(table, unique, refusal),
    ]


def _sqlite_no_replace(table: str, unique: Sequence[Sequence[str]], refusal: str) -> str:
    taken = " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE " + " AND ".join(f"{column} = NEW.{column}" for column in key) + ")"
        for key in unique
    )
    return f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN {taken} BEGIN SELECT {refusal}; END"


def _postgresql(table: str) -> list[str]:
    return [
        """CREATE OR REPLACE FUNCTION evenhand_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
           BEGIN RAISE EXCEPTION '%% is append-only: record a new row instead', TG_TABLE_NAME; END $$""",
        f"""CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table}
            FOR EACH ROW EXECUTE FUNCTION evenhand_refuse()""",
        f"""CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
            FOR EACH STATEMENT EXECUTE FUNCTION evenhand_refuse()""",
    ]


def protect_items(connection: Connection) -> None:
    """Let an item lose its texts (retention) and change in no other way."""
    same = "IS" if connection.dialect.name == "sqlite" else "IS NOT DISTINCT FROM"
    kept = ["id", "collection", "key", "content_sha256", "slice", "system", "system_b", "pair", "created_at"]
    texts = ["request", "reference", "candidate", "candidate_b"]
    allowed = " AND ".join(
        [f"NEW.{column} {same} OLD.{column}" for column in kept]
        + [f"(NEW.{column} {same} OLD.{column} OR NEW.{column} IS NULL)" for column in texts]
    )
    if connection.dialect.name == "sqlite":
        statements = [
            f"CREATE TRIGGER item_no_change BEFORE UPDATE ON item WHEN NOT ({allowed}) "
            f"BEGIN SELECT {_ITEM_REFUSAL}; END",
            f"CREATE TRIGGER item_no_delete BEFORE DELETE ON item BEGIN SELECT {_ITEM_REFUSAL}; END",
            _sqlite_no_replace("item", [["id"], ["collection", "key", "content_sha256"]], _ITEM_REFUSAL),
        ]
    else:
        statements = [
            f"""CREATE TRIGGER item_no_change BEFORE UPDATE ON item
                FOR EACH ROW WHEN (NOT ({allowed})) EXECUTE FUNCTION evenhand_refuse()""",
            "CREATE TRIGGER item_no_delete BEFORE DELETE ON item FOR EACH ROW EXECUTE FUNCTION evenhand_refuse()",
            "CREATE TRIGGER item_no_truncate BEFORE TRUNCATE ON item "
            "FOR EACH STATEMENT EXECUTE FUNCTION evenhand_refuse()",
        ]
    for statement in statements:
        connection.exec_driver_sql(statement)
