from __future__ import annotations

import pytest

from evaluator.api import plan
from tests.untidy.defects import rows_of
from tests.untidy.settings import HOUR_S, Untidy
from tests.untidy.traffic import draw_traffic
from tests.untidy.writing import as_log


def warned(seed: int, slowness: tuple[float, ...], **options: object) -> list[str]:
    untidy = Untidy(
        displays=4000, days=0.25, longest_s=5 * HOUR_S, slowness=slowness, attribution_s=5 * HOUR_S,
        launches=(0.0, 0.0, 0.4),
    )  # fmt: skip
    traffic = draw_traffic(untidy, seed)
    log, _ = as_log(traffic, rows_of(traffic, seed))
    said = plan(log, "ucb1", **options).warnings
    return [text for text in said if "delays depend on the action" in text]


def test_a_slow_action_is_named_where_one_law_corrects_all() -> None:
    (text,) = warned(1, (0.3, 0.3, 1.0), immature="correct")
    assert "action a2 come later" in text
    (text,) = warned(1, (0.1, 1.0, 1.0), immature="correct")
    assert "action a0 come sooner" in text
    assert not warned(1, (0.3, 0.3, 1.0))  # nothing is corrected


@pytest.mark.parametrize("window", [None, 200])
def test_actions_with_one_law_are_not_however_young_they_are(window: int | None) -> None:
    # The last action was launched late: its displays were followed more briefly, which is no sign of its delays.
    assert not [text for seed in range(20) for text in warned(seed, (1.0, 1.0, 1.0), immature="correct", window=window)]


def test_raw_delays_of_a_late_action_would_have_been_taken_for_quick_ones() -> None:
    untidy = Untidy(displays=4000, days=0.25, longest_s=5 * HOUR_S, attribution_s=5 * HOUR_S, launches=(0.0, 0.0, 0.4))
    rows = rows_of(draw_traffic(untidy, 2), 2)
    delay = rows.conversion_time - rows.time[rows.conversion_of]
    late = rows.action[rows.conversion_of] == 2
    error = delay.std() * (1 / late.sum() + 1 / (~late).sum()) ** 0.5
    assert delay[~late].mean() - delay[late].mean() > 4 * error
