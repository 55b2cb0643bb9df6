"""The labelling queue: balanced, seeded, with steady items and a share labelled twice."""

from collections import Counter

import numpy as np
import pytest

from core.stats.queue import NO_BAND, Pool, build_queue

SLICES = ["anchor"] * 10 + ["boundary"] * 40 + ["production"] * 450


def pool(*, unsteady: float = 0.3, seed: int = 0) -> Pool:
    rng = np.random.default_rng(seed)
    flips = np.where(rng.random(len(SLICES)) < unsteady, 0.4, 0.0)
    return Pool(SLICES, rng.choice(4, len(SLICES), p=[0.1, 0.1, 0.1, 0.7]), flips)


def chosen_from(source: Pool, size: int = 30, seed: int = 1, **options: float) -> list[int]:
    choices = build_queue(source, size=size, rng=np.random.default_rng(seed), **options)  # type: ignore[arg-type]
    return [choice.item for choice in choices]


def test_slices_take_turns_though_one_is_45_times_another() -> None:
    counts = Counter(SLICES[item] for item in chosen_from(pool()))
    assert counts == {"anchor": 10, "boundary": 10, "production": 10}


def test_a_small_slice_gives_all_it_has_and_the_rest_go_on() -> None:
    counts = Counter(SLICES[item] for item in chosen_from(pool(), size=90))
    assert counts == {"anchor": 10, "boundary": 40, "production": 40}


def test_score_bands_take_turns_within_a_slice() -> None:
    source = pool(unsteady=0)
    counts = Counter(int(source.bands[item]) for item in chosen_from(source, 40) if SLICES[item] == "production")
    assert max(counts.values()) - min(counts.values()) <= 1


@pytest.mark.parametrize("unsteady", [0.02, 0.3, 0.98])
def test_steady_and_unsteady_items_are_always_among_them(unsteady: float) -> None:
    source = pool(unsteady=unsteady)
    steady = [source.flips[item] == 0 for item in chosen_from(source, 12)]
    assert 3 <= sum(steady) <= 9


def test_a_fifth_is_labelled_twice_by_two_different_readers() -> None:
    choices = build_queue(pool(), size=50, readers=3, rng=np.random.default_rng(2))
    doubles = [choice for choice in choices if choice.second_slot is not None]
    assert len(doubles) == 10
    assert all(choice.slot != choice.second_slot for choice in doubles)
    assert max(Counter(choice.slot for choice in choices).values()) == 17


def test_one_reader_labels_nothing_twice() -> None:
    assert all(
        choice.second_slot is None for choice in build_queue(pool(), size=9, readers=1, rng=np.random.default_rng())
    )


def test_readers_do_not_get_a_slice_each() -> None:
    two = Pool(["a", "b"] * 50, np.zeros(100, np.int64), np.zeros(100))
    choices = build_queue(two, size=100, rng=np.random.default_rng(3))
    assert {(two.slices[choice.item], choice.slot) for choice in choices} == {("a", 0), ("a", 1), ("b", 0), ("b", 1)}


def test_without_scores_the_slices_are_balanced() -> None:
    unknown = Pool(SLICES, np.full(len(SLICES), NO_BAND), np.full(len(SLICES), np.nan))
    choices = build_queue(unknown, size=9, rng=np.random.default_rng(4))
    assert Counter(SLICES[choice.item] for choice in choices) == {"anchor": 3, "boundary": 3, "production": 3}
    assert {choice.steady for choice in choices} == {None}


def test_the_seed_decides_and_no_item_comes_twice() -> None:
    assert chosen_from(pool()) == chosen_from(pool())
    assert chosen_from(pool()) != chosen_from(pool(), seed=2)
    everything = chosen_from(pool(), size=10_000)
    assert sorted(everything) == list(range(len(SLICES)))


@pytest.mark.parametrize("options", [{"size": 0}, {"readers": 0}, {"double_share": 1.5}])
def test_impossible_wishes_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"at least one|between 0 and 1"):
        build_queue(pool(), rng=np.random.default_rng(0), **({"size": 5} | options))  # type: ignore[arg-type]
