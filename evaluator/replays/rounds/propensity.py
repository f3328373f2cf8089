"""Probabilities with which the logging policy showed what it showed, and how a log is thinned by them.

Thinning turns any log with known propensities into one logged uniformly. Accepting a display with probability c /
propensity leaves every action shown with probability c whatever the context: plain matching is exact on what remains.
For contextual policies c must be one number for the whole log (a per-context or per-action c tilts the contexts). For
the others a c for each action is enough and keeps more; where an action's propensity never changes it keeps everything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from evaluator.errors import ParameterError, PropensityError, nearest
from evaluator.log import Log
from evaluator.log.contract import has_eligibility
from evaluator.log.eligible import sizes
from evaluator.log.log_tables import PropensityKind
from evaluator.log.schema import ELIGIBLE, WEIGHT, Columns
from evaluator.options.shared import PropensityMode
from evaluator.replays.rounds.fitted import (
    FOLDS,
    Acceptance,
    FittedLogger,
    acceptance_of,
    choice_weights,
    chosen_with,
    fit_logger,
)
from evaluator.replays.rounds.survey import Survey

MODES: tuple[PropensityMode, ...] = get_args(PropensityMode)

Floats = npt.NDArray[np.float64]
# From columns of some displays to their propensities.
Rule: TypeAlias = Callable[[Columns], Floats]
# Part of the assumption, and a warning of every replay that rests on it.
NOT_AT_REST = "the fit of the propensities did not come to rest, so they may be off: give fewer columns, by `features`"


@dataclass(frozen=True, eq=False)
class Propensities:
    """Propensity of each logged action: its kind (logged, uniform by design, estimated, absent), and what it rests on.

    `rule` takes the columns of displays that it `reads` to their propensities, shape (n,), in (0, 1] unless tilted;
    None when absent. `smallest` and `largest` are those of each action over the whole log, shape (K,); nan for actions
    never shown. `fitted` is the c of propensities that were fitted to contexts, where the smallest is less, None for
    all others; `settled` says whether that fit came to rest.

    Where the log's displays are not an even sample of the traffic (`tilted`), by their `weights` (None where all are
    alike) or as a `kept_share` of them was kept (1 where propensities are of the log's own actions), the propensity p
    is made one of the *logged* displays, p (mean weight) / weight / (kept share): accepting with a probability inverse
    to it gives rounds of the traffic, and mean 1 / it by action is 1 as ever. It may exceed 1.
    """

    kind: PropensityKind
    assumption: str
    reads: tuple[str, ...]
    rule: Rule | None
    smallest: Floats
    largest: Floats
    weights: DisplayWeights | None = None
    kept_share: float = 1.0
    fitted: Acceptance | None = None
    settled: bool = True

    @property
    def tilted(self) -> bool:
        """Whether the log's displays are no even sample of the traffic, so that their plain averages are not its."""
        return self.weights is not None or self.kept_share < 1.0

    @property
    def least(self) -> float:
        """The smallest propensity of the log; nan when absent."""
        return float(np.nanmin(self.smallest)) if self.rule is not None else float("nan")

    @property
    def even(self) -> bool:
        """Whether every display has propensity 1/K."""
        if self.rule is None:
            return False
        same = np.nanmin(self.smallest) == np.nanmax(self.largest)
        return bool(same and np.isclose(self.least * len(self.smallest), 1.0))

    def of(self, displays: Columns) -> Floats:
        """Return the propensities of some displays."""
        if self.rule is None:
            raise PropensityError("There are no propensities.", remedy="give `propensity`.")
        return self.rule(displays)

    def after(self, first: int) -> Propensities:
        """Return them for the log without its first displays, whose others are numbered anew from 0."""
        rule = self.rule
        if rule is None or not first or "display_id" not in self.reads:
            return self
        return replace(self, rule=partial(_numbered, rule, first))

    def shown(self, displays: Columns) -> Floats:
        """Return the probabilities with which the logging policy showed the actions of some displays, in (0, 1]."""
        p = self.of(displays) * self.kept_share
        return p if self.weights is None else p * displays[WEIGHT] / self.weights.mean

    def quantile(self, log: Log, quantile: float) -> float:
        """Return a quantile over the log's displays; nan when absent. Above 0 it costs 8 bytes a display.

        At 0 it is the c of a replay: the smallest, or what `fitted` has in its place where that is more.
        """
        if self.rule is None or quantile == 0.0:
            return self.least if self.fitted is None else max(self.least, self.fitted.overall)
        return float(np.quantile(np.concatenate([self.of(batch) for _, batch in log.batches(self.reads)]), quantile))

    def quantiles(self, log: Log, quantile: float) -> Floats:
        """Return a quantile for each action, shape (K,); 1 for actions never shown."""
        if quantile == 0.0:
            c = self.smallest if self.fitted is None else np.maximum(self.smallest, self.fitted.by_action)
            return np.where(np.isnan(self.smallest), 1.0, c)
        columns = tuple(dict.fromkeys(("action", *self.reads)))
        parts = [(batch["action"], self.of(batch)) for _, batch in log.batches(columns)]
        action, p = (np.concatenate(part) for part in zip(*parts, strict=True))
        return np.array(
            [np.quantile(p[action == k], quantile) if (action == k).any() else 1.0 for k in range(log.n_actions)]
        )


# Rules, by name and not in line, so that a plan can be pickled; what they depend on comes first.
def _as_logged(displays: Columns) -> Floats:
    return displays["propensity"]


def _of_action(p: Floats, displays: Columns) -> Floats:
    return p[displays["action"]]


def _one_of_set(displays: Columns) -> Floats:
    return 1.0 / sizes(displays[ELIGIBLE])


def _of_logger(logger: FittedLogger, displays: Columns) -> Floats:
    return logger.of(displays["display_id"], displays["context"], displays["action"])


def _numbered(rule: Rule, first: int, displays: Columns) -> Floats:
    return rule({**displays, "display_id": displays["display_id"] + first})


def _of_rule(rule: Rule, tilt: Callable[[Floats, Columns], Floats], displays: Columns) -> Floats:
    return tilt(rule(displays), displays)


def _shared(share: float, p: Floats, displays: Columns) -> Floats:
    return p / share


def _by_weight(mean: float, p: Floats, displays: Columns) -> Floats:
    return p * mean / displays[WEIGHT]


NONE_GIVEN = Propensities(
    "absent",
    "the logging policy ignored contexts and outcomes (no propensities given)",
    (),
    None,
    np.zeros(0),
    np.zeros(0),
)


def resolve_propensities(survey: Survey, mode: PropensityMode | None) -> Propensities:
    """Return the log's propensities as the user wants them read.

    That is ``column`` (the logged ones), ``uniform`` (1/K by design), ``estimate`` (frequencies: the logger ignored the
    context), ``estimate:context`` (cross-fitted multinomial logistic model, `evaluator.replays.rounds.fitted`; extra
    ``propensity``), or None: the logged ones, if any. Raise PropensityError if the log has not what was asked for, or a
    log with display weights has no propensities at all.
    """
    log = survey.log
    if mode is None:
        mode = "column" if log.meta.propensity != "absent" else None
    weights = read_weights(log)
    if mode is None and weights is not None:
        raise PropensityError(
            f"Log {log.meta.name!r} has display weights and no propensities: nothing says what to thin by.",
            remedy="choose what is true of the logging policy: `propensity='uniform'` or estimate, or name a column.",
        )
    if mode is None:
        return NONE_GIVEN
    found = _read(survey, mode, weights)
    if mode == "column" and log.meta.kept_share < 1.0:
        share = log.meta.kept_share
        found = _tilted(found, partial(_shared, share), found.smallest / share, found.largest / share)
        found = replace(found, kept_share=share)
    return found if weights is None else _weighed(log, found, weights)


def display_weights(log: Log) -> Propensities:
    """Return what thins a log to an even sample of the traffic, whatever was shown; absent without weights."""
    weights = read_weights(log)
    if weights is None:
        return NONE_GIVEN
    return _weighed(log, _whatever_is_shown(np.where(np.isnan(weights.smallest), np.nan, 1.0)), weights)


def logger_thinning(log: Log, share: float) -> Thinning:
    """Return how a log is thinned where its logging policy is the one that chooses: to a share of the traffic.

    Every display is kept alike, whatever it shows; where it has a weight, in proportion to that.
    """
    weights = read_weights(log)
    same = _whatever_is_shown(np.ones(log.n_actions))
    return Thinning(same if weights is None else _weighed(log, same, weights), np.full(log.n_actions, share))


def _whatever_is_shown(whole: Floats) -> Propensities:
    return Propensities("absent", NONE_GIVEN.assumption, ("action",), partial(_of_action, whole), whole, whole)


def _tilted(found: Propensities, tilt: Callable[[Floats, Columns], Floats], low: Floats, high: Floats) -> Propensities:
    rule = found.rule
    assert rule is not None
    return replace(found, rule=partial(_of_rule, rule, tilt), smallest=low, largest=high)


def _weighed(log: Log, found: Propensities, weights: DisplayWeights) -> Propensities:
    """Return the propensities of the logged displays of a log with weights, in one pass."""
    mean = weights.mean
    reads = tuple(dict.fromkeys((*found.reads, WEIGHT)))
    tilted = _tilted(found, partial(_by_weight, mean), found.smallest, found.largest)
    low, high = _extremes(log, reads, tilted.of)
    return replace(tilted, reads=reads, smallest=low, largest=high, weights=weights)


def _extremes(log: Log, reads: tuple[str, ...], rule: Rule) -> tuple[Floats, Floats]:
    """Return the smallest and the largest propensity of each action, shape (K,), nan for those never shown."""
    low, high = np.full(log.n_actions, np.inf), np.full(log.n_actions, -np.inf)
    for _, batch in log.batches(list(dict.fromkeys(("action", *reads)))):
        p = rule(batch)
        np.minimum.at(low, batch["action"], p)
        np.maximum.at(high, batch["action"], p)
    low[np.isinf(low)] = high[np.isinf(high)] = np.nan
    return low, high


def _read(survey: Survey, mode: PropensityMode, weights: DisplayWeights | None) -> Propensities:
    """Return the propensities as they are read, whatever the displays stand for."""
    log = survey.log
    if mode == "column":
        return _column(survey)
    if mode == "uniform" and has_eligibility(log):
        smallest, largest = _extremes(log, (ELIGIBLE,), _one_of_set)
        said = "actions were logged uniformly at random among the eligible ones"
        return Propensities("uniform", said, (ELIGIBLE,), _one_of_set, smallest, largest)
    if mode.startswith("estimate") and has_eligibility(log):
        return _estimated_among(log, mode, weights)
    if mode == "uniform":
        return _by_action(
            survey, "uniform", np.full(log.n_actions, 1.0 / log.n_actions), "actions were logged uniformly at random"
        )
    if mode == "estimate":
        return frequencies(survey, survey.shown if weights is None else weights.of_action)
    if mode == "estimate:context":
        if weights is not None:
            raise PropensityError(
                f"`propensity='estimate:context'` cannot weigh the displays of log {log.meta.name!r}.",
                remedy="give the logged propensities, or `propensity='estimate'` if the logger ignored the context.",
            )
        return _multinomial(log)
    raise ParameterError(f"`propensity` {mode!r} is not a choice.", remedy=nearest(mode, MODES))


def _estimated_among(log: Log, mode: PropensityMode, weights: DisplayWeights | None) -> Propensities:
    """Return estimated propensities where displays have their own eligible actions."""
    if mode != "estimate":
        raise PropensityError(
            f"`propensity='{mode}'` fits a model that does not know which actions were eligible, and the displays of "
            f"log {log.meta.name!r} differ in that.",
            remedy="give the logged propensities, or `propensity='estimate'` if the logger ignored the context.",
        )
    if weights is not None:
        raise PropensityError(
            f"`propensity='estimate'` cannot weigh the displays of log {log.meta.name!r}, which have their own "
            "eligible actions.",
            remedy="give the logged propensities.",
        )
    rule = partial(chosen_with, choice_weights(log))
    smallest, largest = _extremes(log, (ELIGIBLE,), rule)
    said = "propensities estimated by weights of the actions, shared out over each display's eligible ones: the logger "
    return Propensities("estimated", said + "ignored the context", ("action", ELIGIBLE), rule, smallest, largest)


def how_it_chose(log: Log) -> str:
    """Return a hint that names the choices of `propensity` for a log that has none of its own."""
    by_context = " or `propensity='estimate:context'` (by the context)" if "context" in log.schema.names else ""
    return (
        "say what is true of the logger: `propensity='uniform'` (it chose at random), `propensity='estimate'` "
        f"(whatever the context){by_context}; or name the column of its propensities in the spec."
    )


def _column(survey: Survey) -> Propensities:
    log = survey.log
    if log.meta.propensity == "absent":
        raise PropensityError(f"Log {log.meta.name!r} has no propensity column.", remedy=how_it_chose(log))
    words = {"logged": "the logged propensities are right", "uniform": "actions were logged uniformly at random"}
    said = words.get(log.meta.propensity, "the estimated propensities are right")
    return Propensities(
        log.meta.propensity, said, ("propensity",), _as_logged, survey.smallest,
        survey.largest,
    )  # fmt: skip


def _by_action(survey: Survey, kind: PropensityKind, p: Floats, said: str) -> Propensities:
    known = np.where(survey.shown > 0, p, np.nan)
    return Propensities(kind, said, ("action",), partial(_of_action, p), known, known)


def frequencies(survey: Survey, shown: npt.NDArray[np.integer] | Floats) -> Propensities:
    """Return how often each action was shown, by counts or weights of shape (K,), as propensities."""
    said = "propensities estimated by frequencies: the logger ignored the context"
    return _by_action(survey, "estimated", shown / shown.sum(), said)


def _multinomial(log: Log) -> Propensities:
    if "context" not in log.schema.names:
        raise ParameterError(
            "`propensity='estimate:context'` needs a context, and the log has none.",
            remedy="name the columns that the logger chose by, with `features`; or use `propensity='estimate'`, if it "
            "looked at none.",
        )
    logger = fit_logger(log)
    reads = ("context", "action", "display_id")

    rule = partial(_of_logger, logger)
    smallest, largest = _extremes(log, reads, rule)
    of = f" fitted to {logger.fitted_to:,} displays" if logger.fitted_to < len(log) else ""
    c = acceptance_of(log, logger, ~np.isnan(smallest))
    said = (
        f"propensities estimated by a multinomial logistic model{of}, of each display by the others ({FOLDS} parts): "
        f"no unmeasured confounding; c costs no policy more than {c.lost:.2g} of the traffic, which may bias values as "
        "much"
    )
    if logger.uncertain:
        said += (
            "; the context has too many columns for so few displays, and the propensities are hardly better than a "
            "guess: give fewer, by `features`"
        )
    if not logger.converged:
        said += "; " + NOT_AT_REST
    return Propensities("estimated", said, reads, rule, smallest, largest, fitted=c, settled=logger.converged)


@dataclass(frozen=True, eq=False)
class Thinning:
    """Keep each display with probability min(1, c / propensity), with a number c for each action, shape (K,).

    Without propensities everything is kept.
    """

    propensities: Propensities
    c: npt.NDArray[np.float64]

    @property
    def keeps_all(self) -> bool:
        """Whether no display is ever left out: then no randomness is needed."""
        return self.propensities.rule is None or bool(np.all(~(self.propensities.largest > self.c)))

    @property
    def clips(self) -> bool:
        """Whether some propensity is below its c: the source of bias of `--accept-quantile`."""
        return self.propensities.rule is not None and bool(np.any(self.propensities.smallest < self.c))

    def kept(self, displays: Columns, draws: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Return which displays are kept, shape (n,), given one uniform draw for each.

        The draws are the sampler's, one a display, so that they are the same for all policies.
        """
        kept: npt.NDArray[np.bool_] = draws * self.propensities.of(displays) < self.c[displays["action"]]
        return kept

    def weights(self, displays: Columns) -> npt.NDArray[np.float64]:
        """Return the residual importance weight of each display, shape (n,): 1 unless clipped."""
        return np.maximum(self.c[displays["action"]] / self.propensities.of(displays), 1.0)


def thinning(log: Log, propensities: Propensities, *, per_action: bool, quantile: float = 0.0) -> Thinning:
    """Return how a log is thinned: with a c for each action (non-contextual policies), or one for all.

    c is a quantile of the propensities (Dudik et al. 2012): 0, the smallest, is exact; more keeps more rounds at the
    price of bias.
    """
    k = log.n_actions
    if propensities.rule is None:
        return Thinning(propensities, np.ones(k))
    if per_action:
        return Thinning(propensities, propensities.quantiles(log, quantile))
    return Thinning(propensities, np.full(k, propensities.quantile(log, quantile)))


@dataclass(frozen=True, eq=False)
class DisplayWeights:
    """The weights of a log's displays, read in one pass: one over the probability of being in the log.

    Their sum, and the smallest and largest, of each action's displays, shape (K,); nan for actions never shown.
    """

    displays: int
    of_action: Floats
    smallest: Floats
    largest: Floats

    @property
    def mean(self) -> float:
        """Displays of the traffic for each of the log."""
        return float(self.of_action.sum() / self.displays)

    @property
    def kept(self) -> float:
        """Share of the log's displays that is left when they are thinned to an even sample of the traffic."""
        return self.mean / float(np.nanmax(self.largest))


def read_weights(log: Log) -> DisplayWeights | None:
    """Return the weights of a log's displays; None where it has none."""
    if WEIGHT not in log.schema.names:
        return None
    total = np.zeros(log.n_actions)
    smallest, largest = np.full(log.n_actions, np.inf), np.full(log.n_actions, -np.inf)
    for _, batch in log.batches(["action", WEIGHT]):
        action, weight = batch["action"], batch[WEIGHT]
        total += np.bincount(action, weight, minlength=log.n_actions)
        np.minimum.at(smallest, action, weight)
        np.maximum.at(largest, action, weight)
    never = np.isinf(smallest)
    smallest[never] = largest[never] = np.nan
    return DisplayWeights(len(log), total, smallest, largest)
