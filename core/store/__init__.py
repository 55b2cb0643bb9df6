"""Where every observation is kept: tables, engine, migrations, reads (`queries`) and writes (`writes`)."""
