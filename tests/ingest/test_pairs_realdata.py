"""Published verdicts on pairs through the command, the store and the page's functions."""

import csv as table
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.cli import main
from core.stats.pairwise import Outcome
from core.store.engine import DATABASE_PATH, DATABASE_URL, get_engine, reading
from core.store.queries import list_criteria, list_judges, list_runs
from core.ui import position
from core.ui.cached import Selection
from core.ui.position import PairView
from tests.conftest import REALDATA
from tests.ingest.files import rows

pytestmark = pytest.mark.skipif(not REALDATA.is_dir(), reason="the published data lies beside the checkout only")

NAME = "positionbias_pairs.csv.gz"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The published pairs, imported as a user would: a guessed mapping, confirmed with --yes."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(DATABASE_URL, raising=False)
        patch.setenv(DATABASE_PATH, str(path))
        file = str(REALDATA / NAME)
        assert main(["import", file, "--levels=-1,0,1", "--gate", "1"]) == 2  # a guess is not used unasked
        assert main(["import", file, "--levels=-1,0,1", "--gate", "1", "--yes"]) == 0
        yield path


def test_every_judge_bench_and_repetition_gives_the_published_counts(store: Path) -> None:
    expected = json.loads((REALDATA / "expected.json").read_text())["positionbias"]
    benches = {name: expected[name] for name in ("MTBench", "DevBench")}
    url = f"sqlite:///{store}"
    conflicts = read_conflicts()
    compared = 0
    with reading(get_engine(url)) as session:
        for judge in list_judges(session=session).itertuples():
            (criterion,) = list_criteria(session=session, rubric_id=judge.rubric_id)
            runs = list_runs(session=session, judge_id=judge.judge_id, corpus_id=judge.corpus_id)
            chosen = tuple(zip(runs.id.tolist(), runs.revision.tolist(), strict=True))
            for bench, judges in benches.items():
                selection = Selection(url, chosen, criterion.id, criterion.levels, item_slice=bench)
                if judge.name not in judges:
                    continue
                for key in [key for key in position.repetitions(selection) if key != position.ALL]:
                    found = judges[judge.name][f"rep{key.split('.')[1]}"]
                    check(PairView(selection, key), found, conflicts[bench, judge.name, key.split(".")[1]])
                    compared += 1
    # 9 judges on MTBench and 9 on DevBench, three repetitions each
    assert compared == 54


def read_conflicts() -> dict[tuple[str, str, str], Counter[str]]:
    """By bench, judge and repetition: what the pairs with conflicting tags would be if the first tag counted.

    The published counts take the first tag; here such a reply is unscored, so these pairs are incomplete.
    """
    with gzip.open(REALDATA / NAME, "rt") as file:
        lines = list(table.DictReader(file))
    pairs: dict[tuple[str, ...], dict[str, dict[str, str]]] = defaultdict(dict)
    for line in lines:
        pairs[line["bench"], line["judge"], line["rep"], line["pair_id"]][line["order"]] = line
    found: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for (bench, judge, rep, _), orders in pairs.items():
        if "conflicting_tags" in {line["status"] for line in orders.values()}:
            found[bench, judge, rep][
                first_tag_outcome(orders["ref_first"]["choice"], orders["ref_second"]["choice"])
            ] += 1
    return found


def first_tag_outcome(ab: str, ba: str) -> str:
    """What a pair would count as, from the first tag of each order."""
    if not ab or not ba:
        return "unparsed"
    if "C" in (ab, ba):
        return "both_tie" if ab == ba else "tie"
    return "consistent" if ab != ba else "first" if ab == "A" else "second"


def check(view: PairView, expected: dict[str, Any], conflicts: Counter[str]) -> None:
    bias = position.bias(view)
    outcomes, lenient = bias.outcomes, position.lenient(view)
    moved = conflicts.total() - conflicts["unparsed"]
    assert outcomes.pairs == expected["pairs"]
    assert outcomes.complete == expected["usable"] - moved
    assert outcomes.agreeing == expected["consistent"] - conflicts["consistent"] - conflicts["both_tie"]
    assert outcomes.count(Outcome.CONSISTENT_TIE) == expected["both_tie"] - conflicts["both_tie"]
    assert outcomes.count(Outcome.FIRST_SLOT_FLIP) == expected["first_slot_both"] - conflicts["first"]
    assert outcomes.count(Outcome.SECOND_SLOT_FLIP) == expected["second_slot_both"] - conflicts["second"]
    assert outcomes.count(Outcome.TIE_SHIFT) == expected["tie_vs_win"] - conflicts["tie"]
    assert outcomes.count(Outcome.INCOMPLETE) == expected["unparsed_pairs"] + moved
    if not conflicts:
        assert bias.consistency.value == pytest.approx(expected["consistent_share_of_usable"], abs=1e-9)
        assert lenient.left_out == expected["orphan_answers_mate_unparsed"]
        assert f"{2 * outcomes.agreeing + lenient.left_out}/{lenient.n} answers" == expected["author_log"]


def test_conflicting_tags_are_unscored(store: Path) -> None:
    engine = get_engine(f"sqlite:///{store}")
    found = rows(engine, "SELECT unscored, count(*) FROM score WHERE unscored IS NOT NULL GROUP BY 1 ORDER BY 1")
    with gzip.open(REALDATA / NAME, "rt") as file:
        statuses = [row["status"] for row in table.DictReader(file)]
    assert found == [
        ("conflicting_verdicts", statuses.count("conflicting_tags")),
        ("verdict_missing", statuses.count("unparsed")),
    ]
