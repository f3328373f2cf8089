"""What the policies of a comparison were told."""

from __future__ import annotations

from dataclasses import dataclass

from evaluator.policies.base import Need
from evaluator.replays.plan import ReplayPlan


@dataclass(frozen=True)
class VariantInputs:
    """What a variant's policy was told.

    Parameters
    ----------
    needs
        Facts that the policy asks to be told.
    delay_cdf
        Sentence that says where its delay CDF comes from; None where it needs none, or there is none.
    horizon
        The largest number of rounds, which it was told if it needs the horizon; None where not.
    """

    needs: tuple[Need, ...]
    delay_cdf: str | None
    horizon: int | None

    @property
    def needs_cdf(self) -> bool:
        """Whether the policy asks for a delay CDF."""
        return Need.DELAY_CDF in self.needs


def assumed_by(plan: ReplayPlan) -> VariantInputs:
    """Return what the policy of a variant was told."""
    cdf = plan.setting.delay_cdf
    return VariantInputs(
        needs=tuple(plan.policy.needs),
        delay_cdf=cdf.source if cdf is not None and Need.DELAY_CDF in plan.policy.needs else None,
        horizon=plan.setting.horizon if Need.HORIZON in plan.policy.needs else None,
    )
