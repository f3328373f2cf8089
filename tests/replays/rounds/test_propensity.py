"""Where propensities come from, what is refused, and thinning by hand."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.api import plan
from evaluator.errors import ParameterError, PropensityError
from evaluator.log import Log
from evaluator.log.schema import Columns
from evaluator.replays.rounds.propensity import NONE_GIVEN, resolve_propensities, thinning
from evaluator.replays.rounds.survey import survey
from tests.logs import build_log


def log_of(kind: str) -> Log:
    n = 12
    log = build_log(
        time=np.arange(n), action=[0, 0, 0, 1] * 3, n_actions=2, propensity=[0.75, 0.75, 0.75, 0.25] * 3,
        context=np.arange(2.0 * n).reshape(n, 2),
    )  # fmt: skip
    return log.with_meta(propensity=kind)


def all_of(log: Log) -> Columns:
    return {name: log.column(name) for name in ("action", "propensity")}


@pytest.mark.parametrize(
    ("kind", "mode", "found", "p"),
    [
        ("logged", None, "logged", [0.75, 0.75, 0.75, 0.25]),
        ("logged", "column", "logged", [0.75, 0.75, 0.75, 0.25]),
        ("estimated", "column", "estimated", [0.75, 0.75, 0.75, 0.25]),
        ("logged", "uniform", "uniform", [0.5] * 4),
        ("absent", "uniform", "uniform", [0.5] * 4),
        ("absent", "estimate", "estimated", [0.75, 0.75, 0.75, 0.25]),
    ],
)
def test_propensities_are_read_as_asked(kind: str, mode: str | None, found: str, p: list[float]) -> None:
    log = log_of(kind)
    propensities = resolve_propensities(survey(log), mode)
    assert propensities.kind == found
    assert propensities.of(all_of(log)).tolist() == p * 3
    assert (propensities.smallest.tolist(), propensities.largest.tolist()) == ([p[0], p[3]], [p[0], p[3]])
    assert (propensities.least, propensities.even) == (min(p), len(set(p)) == 1)
    assert propensities.assumption


def test_absent_propensities_are_none() -> None:
    found = resolve_propensities(survey(log_of("absent")), None)
    assert found is NONE_GIVEN
    with pytest.raises(PropensityError, match="no propensities"):
        found.of(all_of(log_of("absent")))


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(PropensityError, match=r"no propensity column.*`propensity='estimate:context'`"):
        resolve_propensities(survey(log_of("absent")), "column")


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ParameterError, match="did you mean uniform"):
        resolve_propensities(survey(log_of("logged")), "unifrom")


def test_a_model_of_the_context_needs_one() -> None:
    with pytest.raises(ParameterError, match="needs a context"):
        resolve_propensities(survey(build_log(time=[0, 1], action=[0, 1], n_actions=2)), "estimate:context")


@pytest.mark.parametrize(
    ("policy", "options"), [("linucb", {}), ("ucb1", {"sampler": "rejection"}), ("ucb1", {"clock": "wall"})]
)
def test_replays_that_need_absent_propensities_name_the_choices(policy: str, options: dict[str, str]) -> None:
    with pytest.raises(PropensityError) as error:
        plan(log_of("absent"), policy, **options)
    for choice in ("uniform", "estimate", "estimate:context", "column"):
        assert choice in str(error.value)


def test_a_policy_without_context_runs_without_propensities() -> None:
    planned = plan(log_of("absent"), "ucb1")
    assert planned.sampler == "keep"
    assert any("number of rounds depends on which actions" in a for a in planned.assumptions)
    assert any("ignored contexts and outcomes" in a for a in planned.assumptions)


@pytest.mark.parametrize(("per_action", "always"), [(False, [0, 0, 0, 1]), (True, [1, 1, 1, 1])])
def test_what_is_always_kept(per_action: bool, always: list[int]) -> None:
    log = log_of("logged")
    found = thinning(log, resolve_propensities(survey(log), None), per_action=per_action)
    assert found.keeps_all == all(always)
    assert not found.clips
    kept = np.array([found.kept(all_of(log), np.random.default_rng(seed).random(12)) for seed in range(300)])
    share = kept.mean(axis=0).reshape(3, 4).mean(axis=0)
    assert (share == 1.0).astype(int).tolist() == always
    # A display that is not always kept is kept with probability c / p = 1/3.
    rest = share[np.array(always) == 0]
    assert (np.abs(rest - 1 / 3) < 4 * (1 / 3 * 2 / 3 / 900) ** 0.5).all()


def test_more_is_kept_where_propensities_are_smaller() -> None:
    draws = np.random.default_rng(1).random(1000)
    kept = []
    for p in (0.2, 0.4):
        log = build_log(
            time=np.arange(1000), action=[0] * 1000, n_actions=2, propensity=np.append(np.full(999, p), 0.1)
        )  # fmt: skip
        kept.append(thinning(log, resolve_propensities(survey(log), None), per_action=False).kept(all_of(log), draws))
    assert (kept[1] <= kept[0]).all()
    assert kept[1].sum() < kept[0].sum()


def test_an_action_never_logged_is_no_obstacle() -> None:
    log = build_log(time=range(4), action=[0, 2, 0, 2], n_actions=3, propensity=[0.5] * 4)
    propensities = resolve_propensities(survey(log), None)
    assert np.isnan(propensities.smallest[1])
    found = thinning(log, propensities, per_action=True)
    assert found.keeps_all
    assert found.kept(all_of(log), np.full(4, 0.999)).all()


def test_without_propensities_all_is_kept() -> None:
    found = thinning(log_of("absent"), NONE_GIVEN, per_action=False)
    assert (found.keeps_all, found.clips) == (True, False)


@pytest.mark.parametrize("per_action", [False, True])
def test_quantiles_clip_and_weigh(per_action: bool) -> None:
    rng = np.random.default_rng(2)
    p, action = rng.uniform(0.1, 0.9, 500), rng.integers(0, 2, 500)
    log = build_log(time=np.arange(500), action=action, n_actions=2, propensity=p)
    found = thinning(log, resolve_propensities(survey(log), None), per_action=per_action, quantile=0.3)
    groups = [action == k if per_action else np.ones(500, bool) for k in range(2)]
    np.testing.assert_allclose(found.c, [np.quantile(p[group], 0.3) for group in groups])
    assert found.clips
    np.testing.assert_allclose(found.weights(all_of(log)), np.maximum(found.c[action] / p, 1.0))
