"""Plans of runs, their attempts, Message Batches, schedules and workers."""

import sqlalchemy as sa
from alembic import op

from core.store.migrations.triggers import protect

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

UNIQUE = {
    "planned_call": [
        ["id"],
        ["run_id", "sequence"],
        ["run_id", "item_id", "repetition", "slot_order", "part"],
    ],
    "call_attempt": [["id"], ["planned_call_id", "attempt", "event"]],
}


def upgrade() -> None:
    op.create_table(
        "worker",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("process", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "message_batch",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("batch_id", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.Column("error", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_message_batch_run_id"), "message_batch", ["run_id"], unique=False)
    op.create_table(
        "plan_chunk",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("in_flight", sa.Integer(), nullable=False),
        sa.Column("done", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.id"],
        ),
        sa.PrimaryKeyConstraint("run_id", "number"),
    )
    op.create_table(
        "planned_call",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("chunk", sa.Integer(), nullable=False),
        sa.Column("item_id", BIG_ID, nullable=False),
        sa.Column("repetition", sa.Integer(), nullable=False),
        sa.Column("slot_order", sa.String(), nullable=False),
        sa.Column("part", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["item_id"],
            ["item.id"],
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("run_id", "item_id", "repetition", "slot_order", "part"),
        sa.UniqueConstraint("run_id", "sequence"),
    )
    op.create_index("ix_planned_call_chunk", "planned_call", ["run_id", "chunk"], unique=False)
    op.create_table(
        "run_state",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("batched", sa.Boolean(), nullable=False),
        sa.Column("redacted", sa.Boolean(), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False),
        sa.Column("planned", sa.Integer(), nullable=False),
        sa.Column("pilot", sa.Boolean(), nullable=False),
        sa.Column("spending_limit", sa.Float(), nullable=True),
        sa.Column("input_price", sa.Float(), nullable=True),
        sa.Column("output_price", sa.Float(), nullable=True),
        sa.Column("price_date", sa.String(), nullable=False),
        sa.Column("call_reserve", sa.Float(), nullable=False),
        sa.Column("spent", sa.Float(), nullable=False),
        sa.Column("input_tokens", BIG_ID, nullable=False),
        sa.Column("output_tokens", BIG_ID, nullable=False),
        sa.Column("error", sa.String(), nullable=False),
        sa.Column("what_to_do", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.id"],
        ),
        sa.PrimaryKeyConstraint("run_id"),
    )
    op.create_index(op.f("ix_run_state_state"), "run_state", ["state"], unique=False)
    op.create_table(
        "schedule",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("corpus_id", sa.Integer(), nullable=False),
        sa.Column("judge_id", sa.Integer(), nullable=False),
        sa.Column("repetitions", sa.Integer(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("cron", sa.String(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_run_id", sa.Integer(), nullable=True),
        sa.Column("error", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["corpus_id"],
            ["corpus.id"],
        ),
        sa.ForeignKeyConstraint(
            ["judge_id"],
            ["judge.id"],
        ),
        sa.ForeignKeyConstraint(
            ["last_run_id"],
            ["run.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "call_attempt",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("planned_call_id", BIG_ID, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("message_batch_id", sa.Integer(), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["message_batch_id"],
            ["message_batch.id"],
        ),
        sa.ForeignKeyConstraint(
            ["planned_call_id"],
            ["planned_call.id"],
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("planned_call_id", "attempt", "event"),
    )
    op.create_index(op.f("ix_call_attempt_message_batch_id"), "call_attempt", ["message_batch_id"], unique=False)
    op.create_index("ix_call_attempt_run", "call_attempt", ["run_id", "event"], unique=False)
    for table, unique in UNIQUE.items():
        protect(op.get_bind(), table, unique=unique)
