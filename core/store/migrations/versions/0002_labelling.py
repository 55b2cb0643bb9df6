"""Labelling queues and blind rankings, append-only."""

import sqlalchemy as sa
from alembic import op

from core.store.migrations.triggers import protect

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

UNIQUE = {
    "label_queue": [["id"]],
    "queue_item": [["id"], ["queue_id", "item_id"]],
    "blind_ranking": [["id"]],
}


def upgrade() -> None:
    op.create_table(
        "label_queue",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("label_set_id", sa.Integer(), nullable=False),
        sa.Column("raters", sa.JSON(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("double_share", sa.Float(), nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["label_set_id"], ["label_set.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_label_queue_label_set_id"), "label_queue", ["label_set_id"], unique=False)
    op.create_table(
        "queue_item",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("queue_id", sa.Integer(), nullable=False),
        sa.Column("item_id", BIG_ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=False),
        sa.Column("second_slot", sa.Integer(), nullable=True),
        sa.Column("why", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["queue_id"], ["label_queue.id"]),
        sa.ForeignKeyConstraint(["item_id"], ["item.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("queue_id", "item_id"),
    )
    op.create_index(op.f("ix_queue_item_item_id"), "queue_item", ["item_id"], unique=False)
    op.create_table(
        "blind_ranking",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("label_set_id", sa.Integer(), nullable=False),
        sa.Column("rater", sa.String(), nullable=False),
        sa.Column("request_sha256", sa.String(), nullable=False),
        sa.Column("item_ids", sa.JSON(), nullable=False),
        sa.Column("ranks", sa.JSON(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["label_set_id"], ["label_set.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_blind_ranking_label_set_id"), "blind_ranking", ["label_set_id"], unique=False)
    for table, unique in UNIQUE.items():
        protect(op.get_bind(), table, unique=unique)
