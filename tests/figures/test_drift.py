from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from core.figures.drift import Mark, change_histogram, time_line
from core.stats.control import control_chart
from core.stats.drift import paired_change
from tests.figures.reading import sent, trace, words

LEVELS = np.arange(1.0, 6.0)
START = datetime(2026, 1, 1, 23, tzinfo=timezone(timedelta(hours=-2)))  # 2026-01-02 01:00 UTC


def change(before, after):
    one = np.eye(5, dtype=int)
    return paired_change(one[before], one[after], LEVELS, rng=np.random.default_rng(0))


def test_raised_unchanged_and_lowered_are_apart_and_counted():
    figure = change_histogram(change([0, 1, 2, 3, 3], [0, 1, 3, 2, 1]))
    lowered, unchanged, raised = (trace(figure, name) for name in ("lowered", "unchanged", "raised"))
    assert lowered.name == "lowered: 2 of 5 (40.0%)"
    assert dict(zip(lowered.x.tolist(), lowered.y.tolist(), strict=True)) == {-1: 1, -2: 1}
    assert (unchanged.x.tolist(), unchanged.y.tolist()) == ([0], [2])
    assert (raised.x.tolist(), raised.y.tolist()) == ([1], [1])
    assert lowered.hovertext == ("lowered by 1: 1 of 5 (20.0%) items", "lowered by 2: 1 of 5 (20.0%) items")
    assert len({drawn.marker.pattern.shape for drawn in figure.data}) == 3


def test_a_direction_without_items_stays_in_the_legend():
    figure = change_histogram(change([0, 1], [0, 1]))
    assert {drawn.name for drawn in figure.data} == {
        "lowered: 0 of 2 (0.0%)",
        "unchanged: 2 of 2 (100.0%)",
        "raised: 0 of 2 (0.0%)",
    }
    assert sum(int(drawn.y.sum()) for drawn in figure.data) == 2


def test_many_different_changes_are_binned_without_losing_an_item():
    rng = np.random.default_rng(4)
    before, after = (rng.multinomial(37, np.full(5, 0.2), size=2_000) for _ in range(2))
    moved = paired_change(before, after, LEVELS, rng=rng)
    figure = change_histogram(moved)
    assert int(trace(figure, "raised").y.sum()) == moved.raised
    assert int(trace(figure, "lowered").y.sum()) == moved.lowered
    assert len(sent(figure)) < 12_000


def test_no_common_items_give_words():
    empty = np.zeros((0, 5), int)
    moved = paired_change(empty, empty, LEVELS, rng=np.random.default_rng(0))
    assert words(change_histogram(moved)) == "undefined: no item was scored in both snapshots"


@pytest.fixture
def history():
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(0.8, 0.01, 25), rng.normal(0.7, 0.01, 5)])
    return [START + timedelta(days=i) for i in range(30)], values


def test_a_time_line_shows_runs_average_limits_and_alarms(history):
    times, values = history
    chart = control_chart(values)
    figure = time_line(times, values, chart, title="Pass rate")
    np.testing.assert_array_equal(trace(figure, "moving average").y, chart.ewma)
    limits = [drawn for drawn in figure.data if drawn.name.startswith("control limits")]
    np.testing.assert_array_equal(limits[0].y, chart.limits.low)
    np.testing.assert_array_equal(limits[1].y, chart.limits.high)
    assert trace(figure, "run that breaks").customdata.tolist() == chart.alarms.tolist()
    assert [drawn.showlegend for drawn in limits] == [True, False]
    assert words(figure) == "out of control, 30 runs"
    shown = sum(len(drawn.x) for drawn in figure.data if drawn.name.startswith("run"))
    assert shown == 30


def test_times_are_shown_in_utc(history):
    times, values = history
    figure = time_line(times[:2], values[:2], control_chart(values[:2]), title="Pass rate")
    assert trace(figure, "run").x[0] == "2026-01-02 01:00:00"
    assert figure.layout.xaxis.title.text == "Time (UTC)"


def test_naive_times_are_refused(history):
    _, values = history
    with pytest.raises(ValueError, match="aware"):
        time_line([datetime(2026, 1, 1)], values[:1], control_chart(values[:1]), title="x")


def test_a_short_history_is_learning_and_draws_no_limits(history):
    times, values = history
    figure = time_line(times[:5], values[:5], control_chart(values[:5]), title="Pass rate")
    assert words(figure) == "learning: 5 of the 20 runs that set the limits"
    assert [drawn.name for drawn in figure.data] == ["run"]


def test_changes_are_lines_of_their_own_kind_that_say_what_changed(history):
    times, values = history
    marks = [
        Mark(times[25], "snapshot changed", "a to <b>b</b>"),
        Mark(times[10], "rubric changed", "1.0 to 1.1"),
        Mark(datetime(2026, 1, 30, tzinfo=UTC), "snapshot changed", "b to c"),
    ]
    figure = time_line(times, values, control_chart(values), title="Pass rate", marks=marks)
    snapshots, rubrics = trace(figure, "snapshot changed"), trace(figure, "rubric changed")
    assert len(snapshots.x) == 6
    assert snapshots.hovertext[0] == "snapshot changed<br>2026-01-27 01:00:00 UTC<br>a to &lt;b&gt;b&lt;/b&gt;"
    assert snapshots.line.dash != rubrics.line.dash
    assert snapshots.marker.symbol != rubrics.marker.symbol


def test_no_runs_give_words():
    assert "nothing was scored" in words(time_line([], np.empty(0), control_chart(np.empty(0)), title="x"))
