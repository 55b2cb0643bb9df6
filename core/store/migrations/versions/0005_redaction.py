"""The list of what is taken out of texts, in the store and with every run that was planned with one."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

SHIPPED = {
    "email": r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}(?!\w)",
    "key": (
        r"(?<!\w)(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}"
        r"|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{10,})(?![\w-])"
    ),
    "phone": (
        r"(?<![\w.,-])(?![0-9]+\.[0-9]+(?!\S?[0-9]))(?=(?:[+() ./-]{0,3}[0-9]){8})"
        r"(?:\+|00)?\(?[0-9]{1,4}\)?(?:[ ./-]?\(?[0-9]{2,5}\)?){2,5}(?![\w-]|[.,][0-9])"
    ),
}
"""What a run took out when it was only said to take something out."""


def upgrade() -> None:
    op.create_table(
        "redaction_pattern",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("expression", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.add_column("run_state", sa.Column("redaction", sa.JSON(), nullable=False, server_default="{}"))
    connection = op.get_bind()
    state = sa.table("run_state", sa.column("redacted", sa.Boolean), sa.column("redaction", sa.JSON))
    connection.execute(sa.update(state).where(state.c.redacted).values(redaction=SHIPPED))
    with op.batch_alter_table("run_state") as table:
        table.alter_column("redaction", server_default=None)
        table.drop_column("redacted")
    schedule = sa.table("schedule", sa.column("id", sa.Integer), sa.column("options", sa.JSON))
    for key, options in connection.execute(sa.select(schedule.c.id, schedule.c.options)).all():
        changed = {name: value for name, value in options.items() if name != "redacted"}
        changed["redaction"] = SHIPPED if options.get("redacted") else {}
        connection.execute(sa.update(schedule).where(schedule.c.id == key).values(options=changed))
