"""Bandit problems with known truth: what a scenario of a spec says, with its delay laws, or what Python code makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evaluator.delays import laws
from evaluator.delays.law_names import LAWS
from evaluator.delays.laws import LONGEST, NEVER, DelayLaw
from evaluator.errors import DataError, ParameterError, SourceError, SpecError, nearest, nearest_file
from evaluator.input_files import refuse_irregular
from evaluator.log import Log, LogMeta
from evaluator.log.eligible import pack
from evaluator.log.fingerprint import content_hash
from evaluator.log.schema import ELIGIBLE, fixed_size_lists
from evaluator.streams import Stream, child_streams
from evaluator.units import ROUND, SECONDS, Tick, is_whole
from evaluator.worlds.scenarios.scenario import (
    Delay,
    Flight,
    LinearScenario,
    PromotionsScenario,
    Scenario,
    ScenarioArrivals,
    flight_parts,
)

DEFAULT_HORIZON = 10_000
# When a policy hears of a zero reward: when the window closes, by the silence until then; or it is told, after a delay.
Zeros = Literal["window", "told"]
# Of logs whose displays arrive in time.
TICK: Tick = "ms"
# Numbers of a log's contexts, all of which are in memory: 8 GB.
LARGEST = 10**9
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
DAY_S = 86_400
# The rate is taken as constant for so long.
STEP_S = 60
_LONGEST_DAYS = 10_000


@dataclass(frozen=True, kw_only=True, eq=False)
class ScenarioProblem:
    """What all problems state.

    Parameters
    ----------
    name
        Name of the scenario.
    laws
        Delay laws: one for all arms, or one an arm.
    horizon, window
        Number of rounds and window, in rounds, of a live run that names none; window None cuts nothing off.
    zeros
        Rule for zero rewards. ``window``: nobody is told of a zero, as in a log of conversions. ``told``: policies that
        take zeros (`evaluator.policies.base.Policy.takes_zeros`) are told of each, after a delay of the arm's law.
    flights
        Rounds between which arms are eligible (`evaluator.worlds.scenarios.scenario.Flight`): an arm arrives, retires,
        and may come again; one without any is always eligible, and in every round one is.
    logger
        Propensities of the logging policy, K of them; None shows all arms alike.
    arrivals
        Traffic of logs in time; None counts rounds, and only then is there a live run.
    displays, seed
        Number of displays and seed of a log that names none.
    deployment
        How policies are deployed, by the names of a replay's options, where neither a live run nor a replay says.
    """

    name: str
    laws: tuple[DelayLaw, ...]
    horizon: int = DEFAULT_HORIZON
    window: int | None = None
    zeros: Zeros = "window"
    flights: tuple[Flight, ...] = ()
    logger: tuple[float, ...] | None = None
    arrivals: ScenarioArrivals | None = None
    displays: int = 100_000
    seed: int = 0
    deployment: Mapping[str, str] = field(default_factory=dict)

    def draw(self, *, displays: int | None = None, seed: int | None = None) -> Log:
        """Return a log drawn from the problem, as `evaluator.datasets.generate` does."""
        assert isinstance(self, BernoulliProblem | LinearProblem)
        log = _draw_log(self, displays, seed)
        return log.with_meta(deployment=dict(self.deployment)) if self.deployment else log

    def _check(self, n_actions: int, fits: bool, what: str, remedy: str) -> None:
        if not fits:
            raise ParameterError(f"{self.name}: {what} and {len(self.laws)} delay laws.", remedy=remedy)
        p = self.logger
        if p is not None and (len(p) != n_actions or min(p) <= 0 or abs(sum(p) - 1) > 1e-9):
            raise ParameterError(
                f"{self.name}: logger {p}.", remedy=f"give {n_actions} propensities above 0 that sum to 1, or none."
            )
        if not self.flights:
            return  # their parts list every action, of which there may be more than fit in memory
        try:
            flight_parts(self.flights, n_actions)
        except ValueError as error:
            raise ParameterError(
                f"{self.name}: {error}.", remedy="in every round, also after the last, one action or more is eligible."
            ) from None


@dataclass(frozen=True, kw_only=True, eq=False)
class BernoulliProblem(ScenarioProblem):
    """Arms without context: arm k converts with probability ``means[k]``, after a delay of law ``laws[k]``.

    Takes the parameters of `ScenarioProblem`, too.

    Parameters
    ----------
    means
        Conversion rates of the arms, K of them; conversions that never come count in them.

    Raises
    ------
    ParameterError
        There are fewer than two arms, a rate is outside [0, 1], or the laws are neither one nor as many as the arms; or
        a flight is of no arm or ends before it begins, or no arm is left; or propensities do not fit the arms.
    """

    means: tuple[float, ...]

    def __post_init__(self) -> None:
        """Check the arms."""
        k = len(self.means)
        fits = k >= 2 and all(0 <= mean <= 1 for mean in self.means) and len(self.laws) in (1, k)
        self._check(
            k, fits, f"means {self.means}", "give two or more rates in [0, 1], and one delay law or one an arm."
        )

    @property
    def n_actions(self) -> int:
        """Number of arms K."""
        return len(self.means)

    @property
    def dimension(self) -> int:
        """Length of the contexts: none."""
        return 0

    @property
    def eventual(self) -> npt.NDArray[np.float64]:
        """Expected number of conversions of a pull that ever come, shape (K,)."""
        return np.array(self.means) * [law.reach for law in self.laws]


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearProblem(ScenarioProblem):
    """Fresh action vectors every round, uniform on [0, 1]^d and scaled to unit length; theta = 1/sqrt(d).

    An action a converts with probability <a, theta>. Vernade et al. 2020, Section 8. Takes the parameters of
    `ScenarioProblem`, too, with one law for all actions.

    Parameters
    ----------
    n_actions, dimension
        Number of actions K and length d of the vectors.
    temperature
        Temperature of the logger, which shows actions by a softmax of their rates over it; None leaves it to `logger`.

    Raises
    ------
    ParameterError
        There are fewer than two actions, no dimension, or several laws; or flights or propensities that cannot be.
    """

    n_actions: int
    dimension: int
    temperature: float | None = None

    def __post_init__(self) -> None:
        """Check the sizes."""
        fits = self.n_actions >= 2 and self.dimension >= 1 and len(self.laws) == 1
        what = f"{self.n_actions} actions, {self.dimension} dimensions"
        self._check(self.n_actions, fits, what, "give two or more actions, one or more dimensions, one delay law.")


Problem = BernoulliProblem | LinearProblem


def problem_of(scenario: Scenario, name: str, folder: Path) -> Problem:
    """Return the problem that a scenario states; folder, errors and laws as of `scenario_laws`."""
    shared: dict[str, Any] = {
        "name": name,
        "laws": tuple(scenario_laws(scenario, folder)),
        "horizon": scenario.horizon or DEFAULT_HORIZON,
        "window": scenario.window,
        "zeros": scenario.zeros,
        "flights": scenario.all_flights,
        "logger": tuple(scenario.logger) if isinstance(scenario.logger, list) else None,
        "arrivals": scenario.arrivals,
        "displays": scenario.displays,
        "seed": scenario.seed,
    }
    if isinstance(scenario, LinearScenario):
        shared |= {"n_actions": scenario.actions, "dimension": scenario.dimensions}
        return LinearProblem(**shared, temperature=scenario.temperature)
    return BernoulliProblem(**shared, means=tuple(scenario.means))


def scenario_laws(scenario: Scenario | PromotionsScenario, folder: Path) -> list[DelayLaw]:
    """Return a scenario's delay laws: one for all actions, one an action, or one for each kind of events.

    A scenario of promotions has laws of sales, refunds and unsubscribes. The file names in a scenario are relative to
    `folder`. Raises SourceError where a file of an empirical law is absent or holds no CDF, and SpecError where the
    numbers of a law are out of range.
    """
    try:
        return [delay_law(delay, folder) for delay in _law_delays(scenario)]
    except ParameterError as error:
        raise SpecError(f"The scenario in {folder}: {error.what}", remedy=error.remedy) from None


def delay_files(scenario: Scenario | PromotionsScenario, folder: Path) -> list[Path]:
    """Return the files that a scenario's laws are read from."""
    return [folder / delay.file for delay in _law_delays(scenario) if delay.file is not None]


def _law_delays(scenario: Scenario | PromotionsScenario) -> list[Delay]:
    if isinstance(scenario, PromotionsScenario):
        return [scenario.sale, scenario.refund, scenario.unsubscribe]
    if isinstance(scenario, LinearScenario) or scenario.delays is None:
        return [scenario.delay]
    return scenario.delays


def delay_law(delay: Delay, folder: Path) -> DelayLaw:
    """Return the law that a `Delay` names; arguments and errors as in `scenario_laws`."""
    if delay.file is not None:
        return _from_file(delay, folder)
    law = LAWS[delay.family]
    return laws.law_of(law, law.arguments(lambda key: getattr(delay, key)))


def _from_file(delay: Delay, folder: Path) -> DelayLaw:
    import polars as pl

    path = folder / (delay.file or "")
    value = delay.density or delay.cdf or "cdf"
    names = [delay.delay or "delay", value]
    try:
        refuse_irregular(path)
        table = pl.read_parquet(path) if path.suffix in (".parquet", ".pq") else pl.read_csv(path)
    except FileNotFoundError:
        hint = nearest_file(path, "give a path relative to the spec.")
        raise SourceError(f"No file {path} of delays.", remedy=hint) from None
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        line = str(error).splitlines()[0]
        raise SourceError(
            f"{path} is not a table of delays: {line}.", remedy="write CSV with a header, or Parquet."
        ) from None
    for name in names:
        if name not in table.columns:
            raise SourceError(f"{path} has no column {name!r}.", remedy=nearest(name, table.columns))
    try:
        points, values = (table[name].cast(pl.Float64).to_numpy() for name in names)
    except pl.exceptions.PolarsError:
        raise SourceError(f"{path}: columns {names} are not numbers.", remedy="one number a row in each.") from None
    if delay.density is not None:
        values = np.cumsum(values) / np.sum(values)
    try:
        return laws.empirical(points * (delay.scale or 1.0), values, source=f"delays of {path.name} (given)")
    except DataError as error:
        raise SourceError(f"{path}: {error.what}", remedy=error.remedy) from None


def generate(
    scenario: Scenario,
    *,
    displays: int | None = None,
    seed: int | None = None,
    name: str = "synthetic",
    folder: Path = Path(),
) -> Log:
    """Return a complete synthetic log: every conversion that ever comes is in it, also those past the last display.

    Parameters
    ----------
    scenario
        Linear or Bernoulli scenario of the log.
    displays, seed
        Number of displays and seed that replace those of the scenario; None keeps the scenario's.
    name
        Name of the log in its metadata.
    folder
        Folder that the file names in the scenario are relative to.

    Returns
    -------
    Log
        Log with tick ``round``, display i at time i, or ``ms`` where the scenario has arrivals; with
        ``expected_reward`` (K,), counting the conversions that come, and, for a linear scenario, ``action_set`` (K, d)
        float64 for each display; with ``eligible`` where the scenario has flights: its logger then chooses among the
        eligible actions, in proportion to their propensities.

    Raises
    ------
    ParameterError
        The argument `displays` is below 1 or `seed` is negative; or so many displays never arrive, or are more than fit
        in memory.
    SourceError, SpecError
        A delay law cannot be made; see `evaluator.worlds.scenarios.problem.scenario_laws`.

    Examples
    --------
    >>> from evaluator.worlds.scenarios.scenario import BernoulliScenario
    >>> generate(BernoulliScenario(kind="bernoulli", means=[0.1, 0.9]), displays=1000)
    Log('synthetic', displays=1000, conversions=515, actions=2, tick='round')
    """
    return problem_of(scenario, name, folder).draw(displays=displays, seed=seed)


def _draw_log(problem: Problem, displays: int | None, seed: int | None) -> Log:
    k, laws = problem.n_actions, list(problem.laws)
    n, seed = size_and_seed(problem, displays, seed, problem.name, each=k * max(problem.dimension, 1))
    # One stream a quantity: a longer log starts with the shorter one's contexts, actions, rewards and delays.
    vectors, logger, rewards, waits, arrivals = log_streams(5, seed)
    columns: dict[str, pa.Array] = {}
    if isinstance(problem, LinearProblem):
        sets = action_sets(n, k, problem.dimension, vectors)
        expected = rates_of(sets)
        columns["action_set"] = fixed_size_lists(sets)
    else:
        expected = np.tile(np.asarray(problem.means, dtype=np.float64), (n, 1))
    columns["expected_reward"] = fixed_size_lists(expected * [law.reach for law in laws])

    propensities = logging_chances(problem, expected)
    if problem.flights:
        eligible = eligible_rounds(problem, n)
        columns[ELIGIBLE] = pack(eligible)
        propensities = propensities * eligible
        propensities /= propensities.sum(axis=1, keepdims=True)
    action = _draw(propensities, logger.random(n))
    shown = np.arange(n)
    converted = np.flatnonzero(rewards.random(n) < expected[shown, action])
    delay = _delays(laws, action[converted], waits.random(n)[converted])
    time, unit, tick = _times(problem.arrivals, n, arrivals)
    converted, when = come(converted, time[converted], delay, unit)
    uniform = problem.logger is None and (not isinstance(problem, LinearProblem) or problem.temperature is None)
    return generated_log(
        time,
        action,
        propensities[shown, action],
        columns,
        event_table(converted, when, np.ones(len(converted))),
        [str(i) for i in range(k)],
        name=problem.name,
        tick=tick,
        propensity="uniform" if uniform else "logged",
        reward_max=1.0,
        counts={"displays": n, "conversions": len(converted)},
    )


def generated_log(
    time: Ints,
    action: Ints,
    chance: Floats,
    columns: dict[str, pa.Array],
    events: pa.Table,
    labels: Sequence[str],
    **meta: Any,
) -> Log:
    """Return a log of drawn displays and events, with the fingerprint of what it holds; `meta` is of `LogMeta`."""
    displays = {
        "display_id": pa.array(np.arange(len(time)), pa.int64()),
        "time": pa.array(time, pa.int64()),
        "action": pa.array(action, pa.int32()),
        "propensity": pa.array(chance, pa.float64()),
        **columns,
    }
    actions = {"action": pa.array(range(len(labels)), pa.int32()), "label": pa.array(labels, pa.string())}
    log = Log(
        displays=pa.table(displays),
        events=events,
        actions=pa.table(actions),
        meta=LogMeta(notes=("Synthetic log: its truth is known.",), **meta),
    ).validated()
    return log.with_meta(fingerprint=content_hash(log))


def come(of: Ints, since: Ints, delay: Ints, unit: int) -> tuple[Ints, Ints]:
    """Return which of some displays their event comes to, and when: a delay in units after the times `since`."""
    comes = delay != NEVER
    return of[comes], since[comes] + np.minimum(delay[comes], LONGEST // unit) * unit


def event_table(display: Ints, when: Ints, value: Floats) -> pa.Table:
    """Return the table of some events, shape (c,) each."""
    kinds = {"display_id": pa.int64(), "time": pa.int64(), "value": pa.float64()}
    return pa.table({name: pa.array(of, kinds[name]) for name, of in zip(kinds, (display, when, value), strict=True)})


def log_streams(count: int, seed: int) -> list[np.random.Generator]:
    """Return the streams that a generated log is drawn from, one a quantity."""
    return child_streams(count, Stream.SYNTHETIC_LOG, seed)


def size_and_seed(
    scenario: Problem | PromotionsScenario, displays: int | None, seed: int | None, name: str, *, each: int
) -> tuple[int, int]:
    """Return the number of displays and the seed of a log, of `each` numbers a display; errors as of `generate`."""
    n = scenario.displays if displays is None else displays
    seed = scenario.seed if seed is None else seed
    if not is_whole(n, 1) or not is_whole(seed, 0):
        raise ParameterError(f"displays={n}, seed={seed}.", remedy="displays is 1 to 2^63 - 1, seed 0 to 2^63 - 1.")
    if n * each > LARGEST:
        raise ParameterError(
            f"{name}: {n:,} displays of {each:,} numbers each are more than a generated log may hold.",
            remedy=f"take fewer displays (`limit`), actions or dimensions: {LARGEST:,} numbers at most.",
        )
    return n, seed


def _times(
    traffic: ScenarioArrivals | None, n: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], int, Tick]:
    """Return the time of each display, shape (n,), ticks in a unit of the delays, and the tick."""
    if traffic is None:
        return np.arange(n), 1, ROUND
    # A tick so short that hardly two displays share one.
    time = np.floor(arrival_times(traffic, n, rng) / SECONDS[TICK]).astype(np.int64)
    return time, round(SECONDS[traffic.delay_unit] / SECONDS[TICK]), TICK


def action_sets(n: int, k: int, d: int, rng: np.random.Generator) -> Floats:
    """Return the action vectors of n rounds of a linear problem, shape (n, K, d)."""
    sets = rng.random((n, k, d))
    sets /= np.linalg.norm(sets, axis=2, keepdims=True)
    return sets


def rates_of(sets: Floats) -> Floats:
    """Return the conversion rates of action vectors, <a, theta>, shape (n, K)."""
    d = sets.shape[2]
    return np.asarray(np.minimum(sets @ np.full(d, d**-0.5), 1.0))


def logging_chances(problem: Problem, expected: Floats) -> Floats:
    """Return the chance that the logging policy shows each action, given its rate, shape (n, K), were all eligible."""
    n, k = expected.shape
    if problem.logger is not None:
        return np.broadcast_to(np.asarray(problem.logger, dtype=np.float64), (n, k))
    if isinstance(problem, LinearProblem) and problem.temperature is not None:
        scores = expected / problem.temperature
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))
    return np.broadcast_to(np.float64(1 / k), (n, k))


def eligible_rounds(problem: Problem, n: int) -> npt.NDArray[np.bool_]:
    """Return which actions are eligible in each of the first n rounds, shape (n, K)."""
    sets = np.zeros((n, problem.n_actions), np.bool_)
    for part in flight_parts(problem.flights, problem.n_actions):
        sets[part.start :] = False
        sets[part.start :, list(part.eligible)] = True
    return sets


def _draw(propensities: Floats, uniform: Floats) -> npt.NDArray[np.int64]:
    """Return one action per row by inversion; the last edge is open so that rounding never leaves the range."""
    edges = np.cumsum(propensities, axis=1)[:, :-1]
    return np.asarray((uniform[:, None] >= edges).sum(axis=1), dtype=np.int64)


def _delays(laws: list[DelayLaw], action: npt.NDArray[np.int64], uniform: Floats) -> npt.NDArray[np.int64]:
    """Return delays in rounds, of the action's own law if there are several."""
    if len(laws) == 1:
        return laws[0].draw(uniform)
    delay = np.empty(len(uniform), np.int64)
    for k, law in enumerate(laws):
        delay[action == k] = law.draw(uniform[action == k])
    return delay


def intensity(arrivals: ScenarioArrivals, seconds: Floats) -> Floats:
    """Return the displays a second expected at each time, shape of `seconds` (since the start of the log)."""
    days = seconds / DAY_S
    rhythm = 1.0 - arrivals.amplitude * np.cos(2 * np.pi * (seconds - arrivals.trough_s) / DAY_S)
    jumped: Floats | float = 1.0
    if arrivals.step is not None and arrivals.step_at_s is not None:
        jumped = np.where(seconds < arrivals.step_at_s, 1.0, arrivals.step)
    return np.asarray(arrivals.displays_per_day / DAY_S * arrivals.growth**days * rhythm * jumped)


def arrival_times(arrivals: ScenarioArrivals, n: int, rng: np.random.Generator) -> Floats:
    """Return the times of the first `n` displays in seconds, increasing, shape (n,); more displays begin with fewer.

    The process of rate 1 is stretched: its times are the cumulative rates at ours. Raises ParameterError where the
    traffic falls so fast that they do not come within 10,000 days.
    """
    due = np.cumsum(rng.exponential(size=n))
    days = 1
    while True:
        edges = np.arange(0, days * DAY_S + 1, STEP_S, dtype=np.float64)
        cumulative = np.concatenate([[0.0], np.cumsum(intensity(arrivals, edges[:-1] + STEP_S / 2) * STEP_S)])
        if cumulative[-1] >= due[-1]:
            return np.interp(due, cumulative, edges)
        if days >= _LONGEST_DAYS:
            raise ParameterError(
                f"{n:,} displays do not come within {days:,} days at {arrivals.displays_per_day:g} a day.",
                remedy="ask for fewer displays, more a day, or a growth closer to 1.",
            )
        days = min(2 * days, _LONGEST_DAYS)
