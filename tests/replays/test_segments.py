"""Value and uplift in groups: known truth, and who is named."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evaluator import compare, replay
from evaluator.arguments import as_descriptions
from evaluator.comparisons.kept import KeptResults
from evaluator.comparisons.run import compare_results, execute_comparison, plan_comparison
from evaluator.comparisons.variant_runs import VariantRuns
from evaluator.errors import ParameterError
from evaluator.estimates.confidence import mean_interval
from evaluator.estimates.paired import difference, sums_of
from evaluator.estimates.simultaneous import mean_of, p_of_one_value
from evaluator.log import Log
from evaluator.log.column import MISSING, read_groups
from evaluator.replays.options import ReplayOptions
from evaluator.reports.console import ReportConsole
from evaluator.reports.documents import show
from tests.logs import build_log

N, MEANS = 20_000, {"a": (0.2, 0.7), "b": (0.6, 0.1)}


def segment_log(seed: int = 0, **columns: pa.Array) -> Log:
    """Return a log of two actions and two groups, in one of which the second action helps, in the other it harms."""
    rng = np.random.default_rng(seed)
    group, action = rng.integers(0, 2, N), rng.integers(0, 2, N)
    mean = np.array(list(MEANS.values()))[group, action]
    shown = np.flatnonzero(rng.random(N) < mean)
    log = build_log(time=np.arange(N), action=action, conversion_display=shown, conversion_time=shown, n_actions=2)
    displays = log.displays.append_column("kind", pa.array(np.array(list(MEANS))[group]))
    for name, values in columns.items():
        displays = displays.append_column(name, values)
    return replace(log, displays=displays)


def test_policy_that_helps_one_group_and_harms_another() -> None:
    result = replay(segment_log(), "fixed:action=1", by="kind")
    (split,) = result.segments
    uplift = {group.label: group.uplift for group in split.groups}
    for name, (first, second) in MEANS.items():
        assert uplift[name].low <= (second - first) / 2 <= uplift[name].high
    assert uplift["a"].low > 0 > uplift["b"].high
    assert split.test.differ
    assert split.test.p < 1e-6
    assert sum(group.value.n for group in split.groups) == result.rounds
    assert all(group.value.level == pytest.approx(0.95) for group in split.groups)
    assert result.segment_table.num_rows == 2


def test_what_helps_in_some_pairs_of_two_columns_and_harms_in_the_others_shows_where_they_are_crossed() -> None:
    """By either column alone the uplift is 0; by both it is +.25 where they agree and -.25 where they do not."""
    rng = np.random.default_rng(3)
    a, b, action = rng.integers(0, 2, (3, N))
    shown = np.flatnonzero(rng.random(N) < 0.4 + 0.25 * np.where(a == b, 1, -1) * np.where(action == 1, 1, -1))
    log = build_log(time=np.arange(N), action=action, conversion_display=shown, conversion_time=shown, n_actions=2)
    for name, values in {"device": np.array(["phone", "tv"])[a], "country": np.array(["de", "fr"])[b]}.items():
        log = replace(log, displays=log.displays.append_column(name, pa.array(values)))
    options = {"by": "device,country,device + country", "baseline": "fixed:action=0"}
    found = compare(log, ["fixed:action=0", "fixed:action=1"], **options)
    by_device, by_country, by_both = found.results[1].segments
    assert [split.column for split in (by_device, by_country, by_both)] == ["device", "country", "device+country"]
    assert (by_device.test.differ, by_country.test.differ, by_both.test.differ) == (False, False, True)
    for split in (by_device, by_country):
        assert all(group.uplift.low < 0.0 < group.uplift.high for group in split.groups)
    truth = {
        f"{d} + {c}": 0.25 if (d == "phone") == (c == "de") else -0.25 for d in ("phone", "tv") for c in ("de", "fr")
    }
    assert {group.label for group in by_both.groups} == set(truth)
    assert all(group.uplift.low <= truth[group.label] <= group.uplift.high for group in by_both.groups)
    assert {(one.column, one.group) for one in found.verdict.candidate.harmed} == {
        ("device+country", pair) for pair, uplift in truth.items() if uplift < 0.0
    }


def test_intervals_have_the_share_of_the_error_that_their_number_leaves() -> None:
    """Those of one mean at that share of the error: of an uplift, which is of two, at half of it each."""
    log = segment_log(age=pa.array(np.arange(N) % 100))
    result = replay(log, "ucb1", by="kind,age")
    total, display, reward = 6, *(result.trajectory[name].to_numpy() for name in ("display_id", "reward"))
    logged = np.zeros(N)
    logged[log.conversions["display_id"].to_numpy()] = 1.0
    for split in result.segments:
        code = read_groups(log, split.column)[0].code
        for g, group in enumerate(split.groups):
            lived, all_shown = reward[code[display] == g], logged[code == g]
            alone = mean_interval(lived, upper=1.0, alpha=0.05 / total)
            assert (group.value.low, group.value.high) == pytest.approx((alone.low, alone.high), abs=1e-12)
            assert group.value.estimate == pytest.approx(lived.mean())
            of_two = [mean_interval(x, upper=1.0, alpha=0.05 / total / 2) for x in (lived, all_shown)]
            uplift = difference(*of_two)
            assert (group.uplift.low, group.uplift.high) == pytest.approx((uplift.low, uplift.high), abs=1e-12)


@pytest.mark.parametrize(
    "options", [{}, {"sampler": "queue"}, {"repeats": 2}, {"horizon": 3000}], ids=["keep", "queue", "repeats", "short"]
)
def test_differences_are_those_of_the_groups_and_shorter_where_both_showed_the_same(options: dict[str, Any]) -> None:
    log = segment_log()
    found = compare(log, ["ucb1", "thompson", "ucb1:exploration=1"], baseline="ucb1", by="kind", bootstrap=0, **options)
    code, earned = read_groups(log, "kind")[0].code, np.zeros(N)
    earned[log.conversions["display_id"].to_numpy()] = 1.0
    unpaired = 0.0
    for of in found.segments:
        for g, group in enumerate(of.groups):
            means = []
            for i in (of.variant, of.reference):
                rounds = found.results[i].trajectory.filter(pc.field("round") <= found.horizon.rounds)
                shown = rounds["display_id"].to_numpy()
                means.append(earned[shown[code[shown] == g]].mean())
            assert group.realised.estimate == pytest.approx(means[0] - means[1], abs=1e-12)
            assert group.realised.low < group.realised.estimate < group.realised.high
            unpaired += sum(found.results[i].segments[0].groups[g].value.high for i in (of.variant, of.reference))
            unpaired -= sum(found.results[i].segments[0].groups[g].value.low for i in (of.variant, of.reference))
    width = sum(group.realised.high - group.realised.low for of in found.segments for group in of.groups)
    if "sampler" not in options and "horizon" not in options:
        assert width < 0.9 * unpaired
    json = found.to_dict()["segments"]
    assert [of["groups"][0]["realised"]["low"] for of in json] == [of.groups[0].realised.low for of in found.segments]


def test_a_reward_that_may_be_negative_moves_no_difference() -> None:
    """Sums count from the smallest reward, which cancels from a difference however unlike the numbers of rounds."""
    log = segment_log()
    values = log.conversions["value"].to_numpy() * 2.0 - 1.0
    sold = pa.table({**{n: log.conversions[n] for n in ("display_id", "time")}, "value": pa.array(values - 3.0)})
    log = log.with_conversions(sold).with_meta(reward_max=1.0, reward_min=-2.0)
    code, earned = read_groups(log, "kind")[0].code, np.zeros(N)
    earned[log.conversions["display_id"].to_numpy()] = log.conversions["value"].to_numpy()
    found = compare(log, ["fixed:action=0", "fixed:action=1"], baseline="fixed:action=0", by="kind")
    for g, group in enumerate(found.segments[0].groups):
        means = []
        for result in found.results:
            shown = result.trajectory["display_id"].to_numpy()[: found.horizon.rounds]
            means.append(earned[shown[code[shown] == g]].mean())
        assert group.realised.estimate == pytest.approx(means[1] - means[0], abs=1e-12)
        truth = -2.0 * (MEANS[group.label][1] - MEANS[group.label][0])
        assert group.realised.low < truth < group.realised.high


def test_runs_that_showed_the_same_displays_do_not_differ_in_any_group() -> None:
    found = compare(segment_log(), ["random"], baseline="random", windows=[40, 400], by="kind")
    (of,) = found.segments
    assert [(g.realised.low, g.realised.high, g.realised.n) for g in of.groups] == [(0.0, 0.0, 0)] * 2
    assert not of.test.differ


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"reward": "observed"}, "exclude each other"),
        ({"by": "kind,"}, "empty column"),
        ({"by": "vector"}, "no groups"),
        ({"by": "propensity"}, "keeps no column 'propensity'"),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_line(options: dict[str, Any], said: str) -> None:
    log = segment_log(vector=pa.array([[1.0]] * N))
    with pytest.raises(ParameterError, match=said) as error:
        replay(log, "ucb1", **{"by": "kind", **options})
    assert "\n" not in str(error.value)


def test_displays_with_weights_are_refused() -> None:
    log = segment_log(weight=pa.array(np.ones(N)))
    with pytest.raises(ParameterError, match="have weights"):
        replay(log, "ucb1", by="kind")


@pytest.mark.parametrize(
    "options",
    [{"final": "last:20%"}, {"cluster_by": "every:100"}, {"repeats": 2}, {"bootstrap": 20},
     {"delays_from": "first:20%"},
     {"doubly_robust": True}, {"objective": "profit"}, {"immature": "correct"}],
    ids=str,
)  # fmt: skip
def test_groups_go_with_the_other_options(options: dict[str, Any]) -> None:
    """Their rounds are all rounds, and their displays those of the log that is replayed."""
    log = segment_log(cost=pa.array(np.full(N, 0.1)))
    log = log.with_meta(observed_until=N, attribution_window=10) if "immature" in options else log
    log = log if "objective" in options else log.changed(displays=log.displays.drop_columns(["cost"]))
    result = replay(log, "ucb1", by="kind", **options)
    (split,) = result.segments
    assert sum(group.value.n for group in split.groups) == result.value.n
    assert sum(group.displays for group in split.groups) == result.logging_value.n
    mean = sum(group.value.n * group.value.estimate for group in split.groups) / result.value.n
    if "repeats" not in options:
        assert mean == pytest.approx(result.value.estimate, abs=1e-12)
    before = result.plan["displays_before"]
    kinds = np.array(log.displays["kind"].to_pylist())[result.trajectory["display_id"].to_numpy()]
    if "repeats" not in options:
        assert {g.label: g.value.n for g in split.groups} == {k: int((kinds == k).sum()) for k in MEANS}
    assert (before > 0) == ("delays_from" in options)


def test_kept_results_have_their_groups(tmp_path: Path) -> None:
    log, policies = segment_log(), as_descriptions(["ucb1", "random"])
    plans = plan_comparison(log, policies, [None], ReplayOptions(by="kind"))
    kept = KeptResults(tmp_path / "kept", policies)
    kept.find(plans, log)
    found = execute_comparison(plans, runs=VariantRuns(plans, kept=kept))
    again = KeptResults(tmp_path / "kept", policies).find(plans, log).results
    assert compare_results(plans, [again[0], again[1]]).to_dict() == found.to_dict()
    assert again[1].segments == found.results[1].segments


def test_comparison_shows_the_groups_of_every_line() -> None:
    found = compare(segment_log(), ["fixed:action=0", "fixed:action=1"], baseline="fixed:action=0", by="kind")
    output = StringIO()
    console = ReportConsole(file=output, width=80)
    show(console, found)
    printed = output.getvalue()
    assert "By kind" in printed
    assert "fixed:action=a1: The realised uplift differs between groups" in printed
    assert "Difference to fixed:action=a0 by kind" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert [len(result.segments) for result in found.results] == [1, 1]


def test_groups_leave_the_replay_as_it_is() -> None:
    log = segment_log()
    plain, split = replay(log, "ucb1"), replay(log, "ucb1", by="kind")
    assert plain.value == split.value
    assert plain.trajectory.equals(split.trajectory)


def test_numbers_are_split_at_quartiles_whose_ties_are_merged() -> None:
    even = np.arange(N) % 1000
    log = segment_log(
        age=pa.array(even.astype(float)), tied=pa.array(np.where(even < 600, 0, even)),
        gaps=pa.array([None if i % 4 == 0 else 1.5 for i in range(N)], pa.float64()),
    )  # fmt: skip
    (age,) = read_groups(log, "age")
    assert age.labels == ("0 to 249", "250 to 499", "500 to 749", "750 to 999")
    assert np.bincount(age.code).tolist() == [N // 4] * 4
    assert read_groups(log, "tied")[0].labels == ("0", "600 to 749", "750 to 999")
    assert read_groups(log, "gaps")[0].labels == ("1.5", MISSING)


def test_words_that_are_numbers_are_cut_where_they_are_more_than_could_be_named() -> None:
    number = np.arange(N) % 100
    log = segment_log(
        age=pa.array(number.astype(str)), code=pa.array(np.char.zfill(number.astype(str), 3)),
        hour=pa.array((number % 10).astype(str)),
    )  # fmt: skip
    assert read_groups(log, "age")[0].labels == ("0 to 24", "25 to 49", "50 to 74", "75 to 99")
    assert read_groups(log, "code")[0].pooled == 80
    assert set(read_groups(log, "hour")[0].labels) == set("0123456789")


def test_small_groups_are_pooled_and_counted() -> None:
    words = np.char.add("w", (np.arange(N) % 1000).astype(str))
    words[: N // 2] = "large"
    (split,) = read_groups(segment_log(word=pa.array(words)), "word")
    assert split.labels == ("large", "other (1,000 groups)")
    assert (split.code == 0).sum() == N // 2
    assert split.pooled == 1000
    (many,) = read_groups(segment_log(word=pa.array(np.char.add("w", (np.arange(N) % 50).astype(str)))), "word")
    assert len(many.labels) == 21
    assert many.labels[-1] == "other (30 groups)"


def test_unknown_column_is_named() -> None:
    with pytest.raises(ParameterError, match="keeps no column 'city'"):
        replay(segment_log(), "ucb1", by="city")
    with pytest.raises(ParameterError, match="empty column"):
        replay(segment_log(), "ucb1", by="kind,")


def test_difference_keeps_its_level_while_a_policy_drifts() -> None:
    """Two groups of unlike size whose common mean drifts; a logged mean that does not."""
    rng, alpha, wrong, runs = np.random.default_rng(1), 0.05, 0, 200
    for _ in range(runs):
        drift = np.linspace(0.1, 0.6, 3000)
        small = rng.random(3000) < 0.2
        x, y = (rng.random(3000) < drift).astype(float), (rng.random(3000) < 0.1).astype(float)
        p = p_of_one_value(
            [[mean_of(sums_of(x[g], upper=1.0)), mean_of(sums_of(y[g], upper=1.0), sign=-1)] for g in (small, ~small)],
            tuned_at=alpha,
        )
        wrong += p <= alpha
    assert wrong <= runs * alpha + 3 * (runs * alpha * (1 - alpha)) ** 0.5
