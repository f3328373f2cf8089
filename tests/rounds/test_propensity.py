"""Where propensities come from, what is refused, and thinning by hand."""

from __future__ import annotations

import numpy as np
import pytest

from evaluator.api import plan
from evaluator.errors import ParameterError, PropensityError
from evaluator.log import Log
from evaluator.rounds.propensity import Propensities, resolve_propensities, thin
from tests.logs import build_log


def log_of(kind: str) -> Log:
    n = 12
    log = build_log(
        time=np.arange(n), action=[0, 0, 0, 1] * 3, n_actions=2, propensity=[0.75, 0.75, 0.75, 0.25] * 3,
        context=np.arange(2.0 * n).reshape(n, 2),
    )  # fmt: skip
    return log.with_meta(propensity=kind)


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
    propensities = resolve_propensities(log_of(kind), mode)
    assert propensities.kind == found
    assert propensities.p.tolist() == p * 3
    assert propensities.assumption


def test_absent_propensities_are_none() -> None:
    assert resolve_propensities(log_of("absent"), None).p is None


def test_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(PropensityError, match=r"no propensity column.*--propensity uniform or"):
        resolve_propensities(log_of("absent"), "column")


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ParameterError, match="did you mean uniform"):
        resolve_propensities(log_of("logged"), "unifrom")


def test_a_model_of_the_context_needs_one() -> None:
    with pytest.raises(ParameterError, match="needs a context"):
        resolve_propensities(build_log(time=[0, 1], action=[0, 1], n_actions=2), "estimate:context")


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
    assert planned.sampler == "queue"
    assert any("ignored contexts and outcomes" in a for a in planned.assumptions)


@pytest.mark.parametrize(("per_action", "c", "always"), [(False, 0.25, [0, 0, 0, 1]), (True, 0.25, [1, 1, 1, 1])])
def test_what_is_always_kept(per_action: bool, c: float, always: list[int]) -> None:
    log = log_of("logged")
    kept = np.array(
        [
            thin(
                resolve_propensities(log, None), log.column("action"), per_action=per_action, quantile=0.0,
                rng=np.random.default_rng(seed),
            ).kept
            for seed in range(300)
        ]
    )  # fmt: skip
    share = kept.mean(axis=0).reshape(3, 4).mean(axis=0)
    assert (share == 1.0).astype(int).tolist() == always
    # A display that is not always kept is kept with probability c / p = 1/3.
    rest = share[np.array(always) == 0]
    assert (np.abs(rest - 1 / 3) < 4 * (1 / 3 * 2 / 3 / 900) ** 0.5).all()


def test_the_draws_are_the_same_whatever_the_propensities() -> None:
    action = np.zeros(1000, np.int32)
    kept = [
        thin(Propensities("logged", np.append(np.full(999, p), 0.1), ""), action, per_action=False, quantile=0.0,
             rng=np.random.default_rng(1)).kept
        for p in (0.2, 0.4)
    ]  # fmt: skip
    assert (kept[1] <= kept[0]).all()
    assert kept[1].sum() < kept[0].sum()


def test_an_action_never_logged_is_no_obstacle() -> None:
    found = thin(Propensities("logged", np.full(4, 0.5), ""), np.array([0, 2, 0, 2], np.int32), per_action=True,
                 quantile=0.0, rng=np.random.default_rng(1))  # fmt: skip
    assert found.kept.all()


def test_without_propensities_all_is_kept() -> None:
    found = thin(Propensities("absent", None, ""), np.zeros(5, np.int32), per_action=False, quantile=0.0,
                 rng=np.random.default_rng(1))  # fmt: skip
    assert found.kept.all()
    assert found.weight.tolist() == [1.0] * 5
    assert (found.clipped, np.isnan(found.c)) == (0.0, True)
