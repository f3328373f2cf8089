"""Whether the conversions of some action come later than those of others: then one delay law corrects none rightly."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from evaluator.log.contract import to_numpy
from evaluator.rounds.maturity import Correction
from evaluator.rounds.survey import Survey

# False alarms, and the mean shift of an action's conversions among those of its age, half of which it is at most, that
# changes a corrected value noticeably.
LEVEL, NOTICEABLE = 1e-3, 0.05


def unlike_delays(survey: Survey, correction: Correction) -> list[str]:
    """Return a warning where corrected displays have delays that depend on the action.

    The place of a conversion's delay D among those that its display's follow-up l would have shown, tau(D) / tau(l), is
    uniform for every action if all have one law, whatever their ages; its mean over n conversions then has standard
    error (12 n)^-1/2 at most. Steps of tau count half. Memory and cost: those of the conversions.
    """
    delay = survey.delay if correction.in_displays else survey.delay_ticks
    limit = survey.limit if correction.in_displays else survey.limit_ticks()
    if limit is None:
        return []
    seen = delay <= correction.needed
    delay, limit = delay[seen], np.minimum(np.maximum(limit[seen], delay[seen]), correction.needed)
    tau = correction.cdf
    place = (np.asarray(tau(delay)) + np.asarray(tau(delay - 1))) / (2.0 * np.asarray(tau(limit)))
    displays, of = np.unique(survey.display[seen], return_inverse=True)
    action = to_numpy(survey.log.take(displays, ["action"])["action"])[of]
    k = survey.log.n_actions
    count = np.bincount(action, minlength=k)
    shift = np.bincount(action, weights=place - 0.5, minlength=k) / np.maximum(count, 1)
    z = np.abs(shift) * np.sqrt(12.0 * count)
    unlike = (z > ndtri(1.0 - LEVEL / (2 * k))) & (np.abs(shift) > NOTICEABLE)
    if not unlike.any():
        return []
    worst = int(np.argmax(np.where(unlike, z, 0.0)))
    when = "later" if shift[worst] > 0 else "sooner"
    return [
        f"Conversions of action {survey.log.labels[worst]} come {when} than those of the others: delays depend on the "
        "action, and --immature correct divides by one law for all, so that slow actions look worse than they are and "
        "quick ones better. Use --immature drop."
    ]
