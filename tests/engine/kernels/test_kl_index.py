"""KL indices against bisection: in 50 decimal digits, so that the answer known is the right one."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import lambertw

from evaluator.policies.indices import bernoulli_index, poisson_index
from tests.twins.divergences import bernoulli_divergence, index_by_bisection, poisson_divergence

Divergence = Callable[[Decimal, Decimal], Decimal]

# Rounding of a divergence in doubles: three terms, each at most 1 in size or relative to the budget, at 2^-53.
_ROUNDING = Decimal(2) ** -50
_PRECISION = 1e-12


def poisson(p: Decimal, q: Decimal) -> Decimal:
    return q - p + (p * (p / q).ln() if p else 0)


def bernoulli(p: Decimal, q: Decimal) -> Decimal:
    if q >= 1:
        return Decimal("Infinity")
    return (p * (p / q).ln() if p else 0) + (1 - p) * ((1 - p) / (1 - q)).ln()


def exact_index(divergence: Divergence, mean: float, budget: Decimal) -> float:
    """Return max{q in [mean, 1]: divergence(mean, q) <= budget}, to 1e-30."""
    with localcontext(prec=50):
        p = Decimal(mean)
        if p >= 1 or divergence(p, Decimal(1)) <= budget:
            return 1.0
        low, high = p, Decimal(1)
        while high - low > Decimal("1e-30"):
            middle = (low + high) / 2
            low, high = (middle, high) if divergence(p, middle) <= budget else (low, middle)
        return float(low)


def agrees(found: float, divergence: Divergence, mean: float, budget: float) -> None:
    """Assert that the index is that of the budget, give or take the rounding of the divergence itself."""
    room = _ROUNDING * (1 + Decimal(budget))
    least = exact_index(divergence, mean, max(Decimal(budget) - room, Decimal(0)))
    most = exact_index(divergence, mean, Decimal(budget) + room)
    assert least - _PRECISION <= found <= most + _PRECISION
    assert min(mean, 1.0) <= found <= 1.0


means = st.one_of(
    st.floats(0.0, 1.5),
    st.sampled_from([0.0, 5e-324, 1e-300, 1e-15, 1e-6, 0.5, 1 - 1e-6, 1 - 1e-12, 1 - 2**-53, 1.0, 1 + 1e-9, 40.0]),
)
budgets = st.one_of(
    st.floats(0.0, 3.0),
    st.floats(-14, 3).map(lambda e: 10.0**e),
    st.sampled_from([0.0, 1e-300, 1e-16, 1.0, 50.0, 745.0, 1e6, 1e300]),
)
edges = settings(deadline=None, max_examples=200)


@edges
@given(mean=means, budget=budgets)
@example(mean=0.0, budget=0.0)
@example(mean=0.999, budget=1000.0)
def test_poisson_index(mean: float, budget: float) -> None:
    agrees(poisson_index(mean, budget), poisson, mean, budget)


@edges
@given(mean=means, budget=budgets)
@example(mean=0.5, budget=40.0)
@example(mean=1 - 2**-53, budget=1.0)
def test_bernoulli_index(mean: float, budget: float) -> None:
    agrees(bernoulli_index(mean, budget), bernoulli, mean, budget)


# Budgets as policies form them, (1 + epsilon) log t / N~: there doubles suffice, and 1e-10 is met outright.
grid = pytest.mark.parametrize("mean", [0.0, 1e-9, 1e-4, 0.01, 0.1, 0.3, 0.5, 0.9, 0.99, 0.9999, 1.0, 1.2])
of_policies = pytest.mark.parametrize("budget", [1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0])


@grid
@of_policies
def test_bisection_in_doubles_agrees(mean: float, budget: float) -> None:
    poisson_twin = index_by_bisection(poisson_divergence, mean, budget)
    assert poisson_index(mean, budget) == pytest.approx(poisson_twin, rel=0, abs=1e-10)
    bernoulli_twin = index_by_bisection(bernoulli_divergence, mean, budget)
    assert bernoulli_index(mean, budget) == pytest.approx(bernoulli_twin, rel=0, abs=1e-10)


@grid
@of_policies
def test_closed_form_agrees(mean: float, budget: float) -> None:
    # d_Pois(p, q) = b is x - log x = 1 + b/p in x = q/p, whose root above 1 is -W(-exp(-1 - b/p)) on the lower branch.
    if mean == 0.0 or budget > 700.0 * mean:
        pytest.skip("exp(-1 - b/p) underflows")
    closed = min(1.0, -mean * float(lambertw(-math.exp(-1.0 - budget / mean), -1).real))
    assert poisson_index(mean, budget) == pytest.approx(closed, rel=0, abs=1e-10)


@edges
@given(mean=st.floats(0, 1), low=st.floats(1e-6, 5), more=st.floats(1e-6, 5))
def test_indices_grow_with_the_budget(mean: float, low: float, more: float) -> None:
    for index in (poisson_index, bernoulli_index):
        assert index(mean, low) <= index(mean, low + more) + _PRECISION
