"""A word search as a judge of its own kind: an answer passes when it holds the words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pandas as pd
from sqlalchemy import Engine

from core.store import writes
from core.store.agreement_queries import find_run, list_candidates
from core.store.queries import CriterionView
from core.store.specs import CallRow, JudgeSpec, ScoreRow
from core.store.tables import Corpus, JudgeKind, Rubric, Unscored

Match = Literal["any", "all"]

PARSER = "word search 1"

_SPACES = re.compile(r"\s+")


class NothingToSearchError(ValueError):
    """The corpus holds no text, or the search no word."""


@dataclass(frozen=True, slots=True)
class WordSearch:
    """What an answer must contain to pass.

    Attributes:
        phrases: Words or phrases, compared as they stand; runs of white space count as one space.
        match: Whether one of them is enough or all are needed.
        case: Whether capitals matter.

    Raises:
        NothingToSearchError: Without a phrase.
    """

    phrases: tuple[str, ...]
    match: Match = "any"
    case: bool = False

    def __post_init__(self) -> None:
        if not self.phrases or not all(phrase.strip() for phrase in self.phrases):
            raise NothingToSearchError("a word search needs at least one word")

    @property
    def name(self) -> str:
        """The search in words.

        >>> WordSearch(("30 days", "one month"), "all").name
        'contains “30 days” and “one month”'
        """
        joined = (" or " if self.match == "any" else " and ").join(f"“{phrase}”" for phrase in self.phrases)
        return f"contains {joined}" + (", capitals matter" if self.case else "")

    def found(self, text: str) -> tuple[str, ...]:
        """The phrases that the text contains."""
        plain = self._plain(text)
        return tuple(phrase for phrase in self.phrases if self._plain(phrase) in plain)

    def passes(self, text: str | None) -> bool | None:
        """Whether the text passes; None when there is no text.

        >>> WordSearch(("30 days",)).passes("You have 30  Days.")
        True
        """
        if text is None:
            return None
        found = self.found(text)
        return bool(found) if self.match == "any" else len(found) == len(self.phrases)

    def _plain(self, text: str) -> str:
        spaced = _SPACES.sub(" ", text.strip())
        return spaced if self.case else spaced.casefold()


def phrases_of(text: str) -> tuple[str, ...]:
    """The phrases of a form, one a line, each once."""
    return tuple(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def record_word_search(
    engine: Engine, search: WordSearch, *, corpus_id: int, rubric_id: int, criterion: CriterionView
) -> int:
    """Save a word search as a judge with a run over a corpus; the id of the judge.

    It scores one criterion of the rubric: a pass is its highest level, a fail its lowest. A search that has judged the
    corpus before is not run again.

    Raises:
        NothingToSearchError: When the corpus holds no text.
    """
    with writes.writing(engine) as session:
        rubric, corpus = session.get(Rubric, rubric_id), session.get(Corpus, corpus_id)
        if rubric is None or corpus is None:
            raise ValueError(f"there is no rubric {rubric_id} or no corpus {corpus_id}")
        texts = list_candidates(session=session, corpus_id=corpus_id)
        if texts.candidate.isna().all():
            raise NothingToSearchError(f"corpus {corpus.name} holds no texts to search")
        judge = writes.add_judge(
            session=session,
            spec=JudgeSpec(
                name=search.name,
                rubric_id=rubric_id,
                rubric_sha256=rubric.sha256,
                kind=JudgeKind.PROGRAM,
                parameters={
                    "phrases": list(search.phrases),
                    "match": search.match,
                    "case": search.case,
                    "criterion": criterion.key,
                },
                parser_version=PARSER,
                simulated=corpus.simulated,
            ),
        )
        judge_id = judge.id or 0
        if find_run(session=session, judge_id=judge_id, corpus_id=corpus_id) is None:
            run = writes.add_run(
                session=session,
                judge_id=judge_id,
                corpus_id=corpus_id,
                name="word search",
                simulated=corpus.simulated,
            )
            recorder = writes.RunRecorder(session=session, run=run)
            recorder.record(_calls(search, texts, criterion))
            recorder.finish()
        return judge_id


def _calls(search: WordSearch, texts: pd.DataFrame, criterion: CriterionView) -> Iterator[CallRow]:
    for row in texts.itertuples():
        text = row.candidate if isinstance(row.candidate, str) else None
        yield CallRow(int(row.id), 0, part=criterion.key, scores=(_score(search, text, criterion),))


def _score(search: WordSearch, text: str | None, criterion: CriterionView) -> ScoreRow:
    verdict = search.passes(text)
    if text is None or verdict is None:
        return ScoreRow(criterion.id, None, Unscored.VERDICT_MISSING)
    found = ", ".join(f"“{phrase}”" for phrase in search.found(text)) or "none of the words"
    return ScoreRow(criterion.id, criterion.levels[-1 if verdict else 0], rationale=f"found {found}")
