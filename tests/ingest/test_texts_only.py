"""A file of texts without scores or labels becomes a corpus to launch runs on."""

from pathlib import Path

import pytest
from sqlalchemy import Engine

from core import cli
from core.ingest.load import plan_import, run_import
from core.ingest.mapping import Mapping
from core.ingest.records import ImportRefused, MappingRefused
from core.ingest.source import Source
from core.store.engine import get_engine, reading
from core.store.plan_queries import choose_items, get_texts
from core.store.queries import list_corpora, list_judges

TEXTS = "item_id,question,answer,model,subset\nq1,Why?,Because.,m1,boundary\nq2,How?,Like this.,m1,\n"
PAIRS = "item_id,candidate,answer_b\np1,left,right\np2,left,\n"


def source(text: str) -> Source:
    return Source.from_bytes("texts.csv", text.encode())


def test_texts_become_a_corpus_that_can_be_judged(engine: Engine) -> None:
    preview = plan_import(engine, source(TEXTS))
    assert preview.mapping.texts_only
    # What wrote a text is its system; nothing in such a file names a judge.
    assert preview.mapping.columns["system"] == ("model",)
    report = run_import(engine, source(TEXTS), mapping=preview.mapping, rubric=None)
    assert (report.imported, report.rows, report.items_new, report.calls, report.judges) == (True, 2, 2, 0, ())
    with reading(engine) as session:
        (corpus,) = list_corpora(session=session).itertuples()
        assert (corpus.name, corpus.version, corpus.items) == ("texts", 1, 2)
        assert list_judges(session=session).empty
        chosen = choose_items(session=session, corpus_id=corpus.id)
        texts = get_texts(session=session, item_ids=chosen.ids)
    assert sorted((text.request, text.candidate) for text in texts.values()) == [
        ("How?", "Like this."),
        ("Why?", "Because."),
    ]


def test_a_line_without_its_text_is_bad(engine: Engine) -> None:
    report = run_import(engine, source(PAIRS), mapping=plan_import(engine, source(PAIRS)).mapping, rubric=None)
    assert report.refused
    assert [(bad.line, bad.column, bad.reason) for bad in report.problems] == [
        (3, "answer_b", "is empty: there is no text to judge")
    ]
    with reading(engine) as session:
        assert list_corpora(session=session).empty


def test_roles_of_scores_without_a_score_are_refused() -> None:
    header = ("id", "text", "judge", "points")
    mapping = Mapping({"item": ("id",), "candidate": ("text",), "judge": ("judge",)})
    with pytest.raises(MappingRefused, match="judge is said, and no column is mapped to score or label"):
        mapping.check(header)


def test_scores_need_a_rubric(engine: Engine) -> None:
    mapping = Mapping({"item": ("item_id",), "score": ("subset",)}, {"judge": "j"})
    with pytest.raises(ImportRefused, match="need the rubric"):
        run_import(engine, source(TEXTS), mapping=mapping, rubric=None)


def test_the_command_line_imports_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'evenhand.db'}"
    monkeypatch.setenv("EVENHAND_DATABASE_URL", url)
    path = tmp_path / "mine.csv"
    path.write_text(TEXTS)
    assert cli.main(["import", str(path), "--yes"]) == 0
    printed = capsys.readouterr().out
    assert "texts only: no column holds scores or labels" in printed
    assert "corpus mine version 1: 2 new items" in printed
    assert cli.main(["import", str(path), "--yes"]) == 1
    with reading(get_engine(url)) as session:
        assert list_corpora(session=session)["items"].tolist() == [2]


def test_a_rubric_for_texts_alone_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_DATABASE_URL", f"sqlite:///{tmp_path / 'evenhand.db'}")
    path = tmp_path / "mine.csv"
    path.write_text(TEXTS)
    assert cli.main(["import", str(path), "--yes", "--levels", "1,2,3", "--gate", "3"]) == 2
