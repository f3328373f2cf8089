"""Delay laws: their tables are their formulas', and draws by inversion follow the table, tail included."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from evaluator.delays import law_names
from evaluator.delays.cdf import DelayCDF
from evaluator.delays.laws import (
    LONGEST,
    NEVER,
    DelayLaw,
    empirical,
    exponential,
    fixed,
    geometric,
    half_normal,
    lognormal_mixture,
    packet_loss,
    pareto,
    parse_law,
    poisson,
    told_cdf,
    uniform,
)
from evaluator.errors import DataError, ParameterError

SIGMAS = 4
MIXTURE = ([0.3, 0.7], [4.0, 90.0], [1.5, 0.5])


def normal_cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def mixture_cdf(a: int) -> float:
    return sum(w * normal_cdf((math.log(a) - math.log(m)) / s) for w, m, s in zip(*MIXTURE, strict=True)) if a else 0.0


# Each law and P(D <= a), a >= 0, written with the standard library.
LAWS = {
    "geometric from 0": (geometric(20), lambda a: 1 - (20 / 21) ** (a + 1)),
    "geometric from 1": (geometric(20, start=1), lambda a: 1 - (1 - 1 / 20) ** a),
    "fixed": (fixed(7), lambda a: float(a >= 7)),
    "exponential": (exponential(20), lambda a: 1 - math.exp(-a / 20)),
    "uniform": (uniform(3, 12), lambda a: min(max((a - 2) / 10, 0.0), 1.0)),
    "poisson": (poisson(6), lambda a: sum(math.exp(-6) * 6**k / math.factorial(k) for k in range(min(a, 90) + 1))),
    "half-normal": (half_normal(20), lambda a: 2 * normal_cdf(a / (20 * math.sqrt(math.pi / 2))) - 1),
    "pareto": (pareto(0.7), lambda a: 1 - a**-0.7 if a else 0.0),
    "pareto, heavy": (pareto(0.2), lambda a: 1 - a**-0.2 if a else 0.0),
    # Manegueu et al. 2020, Section 8.3, as printed.
    "pareto, shifted": (
        pareto(0.3, factor=0.7, shift=1),
        lambda a: 1 - 0.7 / 2**0.3 if a == 0 else 1 - 0.7 / (1 + a) ** 0.3,
    ),
    "lognormal mixture": (lognormal_mixture(*MIXTURE), mixture_cdf),
    "packet loss": (packet_loss(0.2), lambda a: 0.8),
    "packet loss, retried": (packet_loss(0.2, retry=9), lambda a: 1.0 if a >= 9 else 0.8),
    "empirical": (
        empirical([0.0, 2.3, 2.9, 8.0], [0.1, 0.3, 0.5, 0.9], source="by hand"),
        lambda a: 0.1 if a < 3 else 0.5 if a < 8 else 0.9,
    ),
}
law = pytest.mark.parametrize(("law", "formula"), LAWS.values(), ids=LAWS)


@law
def test_table_is_the_formula(law: DelayLaw, formula: Callable[[np.ndarray], np.ndarray]) -> None:
    ages = [*range(300), 5_000, 10**6]
    # Sums of up to 91 terms, differences from 1: 1e-13 is hundreds of roundings.
    np.testing.assert_allclose(law(ages), [formula(a) for a in ages], rtol=0, atol=1e-13)
    np.testing.assert_array_equal(law.table(299), law(range(300)))
    assert law(-1) == 0
    assert (np.diff(law.table(2000)) >= 0).all()


@law
def test_a_delay_is_the_first_age_whose_tau_exceeds_the_draw(
    law: DelayLaw, formula: Callable[[np.ndarray], np.ndarray]
) -> None:
    u = np.random.default_rng(1).random(2000)
    for drawn, delay in zip(u, law.draw(u), strict=True):
        if delay == NEVER:
            assert drawn >= law.reach
        else:
            assert delay == LONGEST or law(delay) > drawn
            assert law(delay - 1) <= drawn


@law
def test_draws_follow_the_formula(law: DelayLaw, formula: Callable[[np.ndarray], np.ndarray]) -> None:
    n = 200_000
    delay = law.draw(np.random.default_rng(2).random(n))
    for a in (0, 1, 3, 7, 8, 20, 100, 70_000, 10**7):
        p = formula(a)
        share = ((delay <= a) & (delay != NEVER)).mean()
        assert abs(share - p) <= SIGMAS * math.sqrt(p * (1 - p) / n) + 1e-12
    assert abs((delay != NEVER).mean() - law.reach) <= SIGMAS * math.sqrt(law.reach * (1 - law.reach) / n)


def test_a_tail_beyond_every_log_still_converts() -> None:
    # P(D > 2^53) = 2^(-53/5) for alpha = 0.2.
    n, p = 500_000, 2.0 ** (-53 * 0.2)
    delay = pareto(0.2).draw(np.random.default_rng(3).random(n))
    assert abs((delay == LONGEST).mean() - p) <= SIGMAS * math.sqrt(p * (1 - p) / n)
    assert (delay > 0).all()


@law
def test_a_policy_is_told_the_same_law(law: DelayLaw, formula: Callable[[np.ndarray], np.ndarray]) -> None:
    cdf = law.delay_cdf(250)
    np.testing.assert_allclose(cdf(np.arange(251)), [formula(a) for a in range(251)], rtol=0, atol=1e-13)


@law
def test_far_steps_are_low_by_less_than_a_quantile_and_exact_where_policies_look(
    law: DelayLaw, formula: Callable[[np.ndarray], np.ndarray]
) -> None:
    reach = 200_000
    cdf = law.delay_cdf(reach)
    ages = np.unique(np.geomspace(1, reach, 400).astype(np.int64))
    off = np.array([formula(int(a)) for a in ages]) - cdf(ages)
    assert (off >= -1e-13).all()
    assert (off < 1 / 4096 + 1e-13).all()
    if law.closed is None:
        every = np.flatnonzero(np.diff(law.table(reach), prepend=0.0) > 0)
        whole = DelayCDF(delays=every, cdf=np.maximum.accumulate(law(every)), source=law.source)
        # Equal but for rounding, which decides where tau has come to rest.
        np.testing.assert_allclose(told_cdf(cdf, reach)(ages), told_cdf(whole, reach)(ages), rtol=0, atol=1e-13)


def test_a_law_without_an_early_step_keeps_its_first() -> None:
    cdf = uniform(1000, 1004).delay_cdf(100)
    assert (cdf(100), cdf.delays.tolist()) == (0.0, [1000])
    assert cdf(1000) == pytest.approx(0.2)


def test_laws_with_a_closed_form_keep_it() -> None:
    assert geometric(500).delay_cdf(10).geometric_ratio == 500 / 501
    assert exponential(50).delay_cdf(10).geometric_ratio == math.exp(-1 / 50)
    assert fixed(30).delay_cdf(10).delays.tolist() == [30]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("geometric:20", "geometric from 0"),
        ("geometric:20:1", "geometric from 1"),
        ("fixed:7", "fixed"),
        ("exponential:20", "exponential"),
        ("uniform:3:12", "uniform"),
        ("poisson:6", "poisson"),
        ("half-normal:20", "half-normal"),
        ("pareto:0.7", "pareto"),
    ],
)
def test_words_of_the_command_line(text: str, same: str) -> None:
    one, other = parse_law(text), LAWS[same][0]
    assert one.source == other.source
    np.testing.assert_array_equal(one.table(500), other.table(500))


@pytest.mark.parametrize("text", ["", "pareto", "pareto:x", "uniform:3", "gamma:2", "poisson:1:2", "geometric:1:1:1"])
def test_other_words_are_refused_with_the_grammar(text: str) -> None:
    with pytest.raises(ParameterError, match="Expected a delay distribution"):
        parse_law(text)


@pytest.mark.parametrize("text", ["pareto:0", "exponential:-1", "poisson:nan", "half-normal:inf", "uniform:5:3",
                                  "uniform:0.5:3", "uniform:-1:3", "geometric:-1", "fixed:-1"])  # fmt: skip
def test_numbers_out_of_range_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="Hint: "):
        parse_law(text)


def test_a_law_whose_delays_never_come_is_refused_as_a_word() -> None:
    with pytest.raises(ParameterError, match="none comes within"):
        parse_law("pareto:1e-299").delay_cdf(100)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: pareto(1, factor=1.5),
        lambda: pareto(1, shift=-1),
        lambda: packet_loss(1.0),
        lambda: packet_loss(0.5, retry=0),
        lambda: lognormal_mixture([0.5], [1, 2], [1, 1]),
        lambda: lognormal_mixture([0.5, 0.6], [1, 2], [1, 1]),
        lambda: lognormal_mixture([0.5, 0.5], [1, 0], [1, 1]),
        lambda: lognormal_mixture([], [], []),
    ],
)
def test_parameters_out_of_range_are_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(ParameterError, match="Hint: "):
        wrong()


@pytest.mark.parametrize(
    ("delays", "cdf", "said"),
    [
        ([1, 0.5], [0.1, 0.2], "Row 2"),
        ([0, 1], [0.3, 0.2], "Row 2"),
        ([-1, 1], [0.3, 0.4], "Row 1"),
        ([0, 1], [0.3, 1.1], "Row 2"),
        ([0, math.nan], [0.3, 1.0], "Row 2"),
        ([0, 1], [0.3], "2 delays and 1 values"),
        ([], [], "0 delays"),
        ([0, 1], [0.0, 0.0], "0 throughout"),
    ],
)
def test_points_that_are_no_cdf_are_refused(delays: list[float], cdf: list[float], said: str) -> None:
    with pytest.raises(DataError, match=said):
        empirical(delays, cdf, source="bad")


ENDS = (
    "0",
    "-1",
    "1",
    "5e-324",
    "1e-300",
    "1e300",
    "1e400",
    "-1e400",
    "nan",
    "1" + "0" * 30,
    "1" + "0" * 5_000,
    "",
    "²",
)


@pytest.mark.parametrize("name", [name for name, named in law_names.LAWS.items() if named.numbers])
def test_numbers_at_the_ends_make_a_law_or_one_line(name: str) -> None:
    words = [f"{name}:{a}" for a in ENDS]
    if len(law_names.LAWS[name].numbers) > 1:
        words += [f"{word}:{b}" for word in words for b in ENDS]
    told = 0
    for word in words:
        try:
            law = parse_law(word)
            law.delay_cdf(1000)
        except (ParameterError, DataError) as error:
            told += "\n" not in str(error) and len(str(error)) < 400
            continue
        tau = law(np.array([0, 1, 10**6]))
        told += bool((tau >= 0).all() and (np.diff(tau) >= 0).all() and (tau <= 1).all())
    assert told == len(words)
