"""The first tables, with the triggers that make observations append-only."""

import sqlalchemy as sa
from alembic import op

from core.store.migrations.triggers import protect, protect_items

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

UNIQUE = {
    "call": [["id"], ["run_id", "item_id", "repetition", "slot_order", "part", "attempt"]],
    "score": [["id"], ["call_id", "criterion_id"]],
    "score_evidence": [["score_id"]],
    "label": [["id"]],
    "adjudication": [["id"]],
    "trust_rule": [["id"]],
    "decision": [["id"]],
}


def upgrade() -> None:
    op.create_table(
        "corpus",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name", "version"),
    )
    op.create_index(op.f("ix_corpus_name"), "corpus", ["name"], unique=False)
    op.create_table(
        "import_file",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("format", sa.String(), nullable=False),
        sa.Column("mapping", sa.JSON(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("imported", sa.Integer(), nullable=False),
        sa.Column("set_aside", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_import_file_sha256"), "import_file", ["sha256"], unique=False)
    op.create_table(
        "import_mapping",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("shape_sha256", sa.String(), nullable=False),
        sa.Column("mapping", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_import_mapping_shape_sha256"), "import_mapping", ["shape_sha256"], unique=False)
    op.create_table(
        "item",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("collection", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("content_sha256", sa.String(), nullable=False),
        sa.Column("slice", sa.String(), nullable=False),
        sa.Column("system", sa.String(), nullable=False),
        sa.Column("request", sa.String(), nullable=True),
        sa.Column("reference", sa.String(), nullable=True),
        sa.Column("candidate", sa.String(), nullable=True),
        sa.Column("candidate_b", sa.String(), nullable=True),
        sa.Column("system_b", sa.String(), nullable=False),
        sa.Column("pair", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("collection", "key", "content_sha256"),
    )
    op.create_table(
        "rubric",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("instructions", sa.String(), nullable=False),
        sa.Column("ready_rule", sa.String(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name", "version"),
    )
    op.create_index(op.f("ix_rubric_name"), "rubric", ["name"], unique=False)
    op.create_index(op.f("ix_rubric_sha256"), "rubric", ["sha256"], unique=False)
    op.create_table(
        "store_revision",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "trust_rule",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("thresholds", sa.JSON(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("labels_seen", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_trust_rule_name"), "trust_rule", ["name"], unique=False)
    op.create_table(
        "corpus_item",
        sa.Column("corpus_id", sa.Integer(), nullable=False),
        sa.Column("item_id", BIG_ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["corpus_id"],
            ["corpus.id"],
        ),
        sa.ForeignKeyConstraint(
            ["item_id"],
            ["item.id"],
        ),
        sa.PrimaryKeyConstraint("corpus_id", "item_id"),
    )
    op.create_index(op.f("ix_corpus_item_item_id"), "corpus_item", ["item_id"], unique=False)
    op.create_table(
        "criterion",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("rubric_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("question", sa.String(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("weight", sa.Float(), nullable=False),
        sa.Column("gate", sa.Float(), nullable=False),
        sa.Column("veto", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["rubric_id"],
            ["rubric.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("rubric_id", "key"),
    )
    op.create_index(op.f("ix_criterion_rubric_id"), "criterion", ["rubric_id"], unique=False)
    op.create_table(
        "judge",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("family", sa.String(), nullable=False),
        sa.Column("prompt_version", sa.String(), nullable=False),
        sa.Column("prompt", sa.String(), nullable=True),
        sa.Column("rubric_id", sa.Integer(), nullable=False),
        sa.Column("output_schema", sa.JSON(), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("parser_version", sa.String(), nullable=False),
        sa.Column("aggregation", sa.String(), nullable=False),
        sa.Column("pairwise", sa.Boolean(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["rubric_id"],
            ["rubric.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("fingerprint"),
    )
    op.create_index(op.f("ix_judge_name"), "judge", ["name"], unique=False)
    op.create_index(op.f("ix_judge_rubric_id"), "judge", ["rubric_id"], unique=False)
    op.create_table(
        "label_set",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("policy", sa.String(), nullable=False),
        sa.Column("rubric_id", sa.Integer(), nullable=False),
        sa.Column("import_file_id", sa.Integer(), nullable=True),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["import_file_id"],
            ["import_file.id"],
        ),
        sa.ForeignKeyConstraint(
            ["rubric_id"],
            ["rubric.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name", "version"),
    )
    op.create_index(op.f("ix_label_set_name"), "label_set", ["name"], unique=False)
    op.create_index(op.f("ix_label_set_rubric_id"), "label_set", ["rubric_id"], unique=False)
    op.create_table(
        "rubric_change",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("rubric_id", sa.Integer(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("line", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["rubric_id"],
            ["rubric.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_rubric_change_rubric_id"), "rubric_change", ["rubric_id"], unique=False)
    op.create_table(
        "set_aside_line",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("import_file_id", sa.Integer(), nullable=False),
        sa.Column("line", sa.Integer(), nullable=False),
        sa.Column("column", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["import_file_id"],
            ["import_file.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_set_aside_line_import_file_id"), "set_aside_line", ["import_file_id"], unique=False)
    op.create_table(
        "adjudication",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("label_set_id", sa.Integer(), nullable=False),
        sa.Column("item_id", BIG_ID, nullable=False),
        sa.Column("criterion_id", sa.Integer(), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("note", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["criterion_id"],
            ["criterion.id"],
        ),
        sa.ForeignKeyConstraint(
            ["item_id"],
            ["item.id"],
        ),
        sa.ForeignKeyConstraint(
            ["label_set_id"],
            ["label_set.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_adjudication_item_id"), "adjudication", ["item_id"], unique=False)
    op.create_index(op.f("ix_adjudication_label_set_id"), "adjudication", ["label_set_id"], unique=False)
    op.create_table(
        "decision",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("judge_id", sa.Integer(), nullable=False),
        sa.Column("corpus_id", sa.Integer(), nullable=False),
        sa.Column("baseline_judge_id", sa.Integer(), nullable=True),
        sa.Column("trust_rule_id", sa.Integer(), nullable=True),
        sa.Column("author", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["baseline_judge_id"],
            ["judge.id"],
        ),
        sa.ForeignKeyConstraint(
            ["corpus_id"],
            ["corpus.id"],
        ),
        sa.ForeignKeyConstraint(
            ["judge_id"],
            ["judge.id"],
        ),
        sa.ForeignKeyConstraint(
            ["trust_rule_id"],
            ["trust_rule.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_decision_corpus_id"), "decision", ["corpus_id"], unique=False)
    op.create_index(op.f("ix_decision_judge_id"), "decision", ["judge_id"], unique=False)
    op.create_table(
        "label",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("label_set_id", sa.Integer(), nullable=False),
        sa.Column("item_id", BIG_ID, nullable=False),
        sa.Column("criterion_id", sa.Integer(), nullable=False),
        sa.Column("rater", sa.String(), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("raw_value", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["criterion_id"],
            ["criterion.id"],
        ),
        sa.ForeignKeyConstraint(
            ["item_id"],
            ["item.id"],
        ),
        sa.ForeignKeyConstraint(
            ["label_set_id"],
            ["label_set.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_label_item_id"), "label", ["item_id"], unique=False)
    op.create_index(op.f("ix_label_label_set_id"), "label", ["label_set_id"], unique=False)
    op.create_table(
        "level",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("criterion_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("anchor", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["criterion_id"],
            ["criterion.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("criterion_id", "value"),
    )
    op.create_index(op.f("ix_level_criterion_id"), "level", ["criterion_id"], unique=False)
    op.create_table(
        "run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("judge_id", sa.Integer(), nullable=False),
        sa.Column("corpus_id", sa.Integer(), nullable=False),
        sa.Column("import_file_id", sa.Integer(), nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["corpus_id"],
            ["corpus.id"],
        ),
        sa.ForeignKeyConstraint(
            ["import_file_id"],
            ["import_file.id"],
        ),
        sa.ForeignKeyConstraint(
            ["judge_id"],
            ["judge.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_run_corpus_id"), "run", ["corpus_id"], unique=False)
    op.create_index(op.f("ix_run_judge_id"), "run", ["judge_id"], unique=False)
    op.create_table(
        "call",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("item_id", BIG_ID, nullable=False),
        sa.Column("repetition", sa.Integer(), nullable=False),
        sa.Column("slot_order", sa.String(), nullable=False),
        sa.Column("part", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("response_id", sa.String(), nullable=True),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.Column("served_model", sa.String(), nullable=True),
        sa.Column("stop_reason", sa.String(), nullable=True),
        sa.Column("raw_reply", sa.String(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("latency_ms", sa.Integer(), nullable=True),
        sa.Column("repaired", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["item_id"],
            ["item.id"],
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("run_id", "item_id", "repetition", "slot_order", "part", "attempt"),
    )
    op.create_index(
        "ix_call_response_id", "call", ["response_id"], unique=False, sqlite_where=sa.text("response_id IS NOT NULL")
    )
    op.create_table(
        "item_vector",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("criterion_id", sa.Integer(), nullable=False),
        sa.Column("slot_order", sa.String(), nullable=False),
        sa.Column("item_id", BIG_ID, nullable=False),
        sa.Column("codes", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["criterion_id"],
            ["criterion.id"],
        ),
        sa.ForeignKeyConstraint(
            ["item_id"],
            ["item.id"],
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.id"],
        ),
        sa.PrimaryKeyConstraint("run_id", "criterion_id", "slot_order", "item_id"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "run_tally",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("criterion_id", sa.Integer(), nullable=False),
        sa.Column("slot_order", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["criterion_id"],
            ["criterion.id"],
        ),
        sa.ForeignKeyConstraint(
            ["run_id"],
            ["run.id"],
        ),
        sa.PrimaryKeyConstraint("run_id", "criterion_id", "slot_order", "outcome"),
    )
    op.create_table(
        "score",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("call_id", BIG_ID, nullable=False),
        sa.Column("criterion_id", sa.Integer(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("unscored", sa.String(), nullable=True),
        sa.Column("raw_value", sa.String(), nullable=True),
        sa.CheckConstraint("(value IS NULL) <> (unscored IS NULL)", name="scored_or_unscored"),
        sa.ForeignKeyConstraint(
            ["call_id"],
            ["call.id"],
        ),
        sa.ForeignKeyConstraint(
            ["criterion_id"],
            ["criterion.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("call_id", "criterion_id"),
    )
    op.create_table(
        "score_evidence",
        sa.Column("score_id", BIG_ID, autoincrement=False, nullable=False),
        sa.Column("rationale", sa.String(), nullable=True),
        sa.Column("cited_evidence", sa.String(), nullable=True),
        sa.Column("boundary_reason", sa.String(), nullable=True),
        sa.Column("confidence", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["score_id"],
            ["score.id"],
        ),
        sa.PrimaryKeyConstraint("score_id"),
    )
    op.bulk_insert(sa.table("store_revision", sa.column("id"), sa.column("revision")), [{"id": 1, "revision": 0}])
    for table, unique in UNIQUE.items():
        protect(op.get_bind(), table, unique=unique)
    protect_items(op.get_bind())
