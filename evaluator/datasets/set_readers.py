"""Which reader a spec's sets of eligible actions have."""

from __future__ import annotations

from evaluator.datasets.calendar_sets import CalendarSets, given_flights, read_flights
from evaluator.datasets.candidate_sets import CandidateSets
from evaluator.datasets.listed_sets import ListedSets
from evaluator.datasets.row_breaches import Breaches
from evaluator.datasets.set_sources import SetSource
from evaluator.datasets.sources.part import TablePart
from evaluator.datasets.spec import FileSpec
from evaluator.datasets.zones import ZonesSeen


def find_sets(spec: FileSpec, files: list[TablePart], zones: ZonesSeen, *, listed: bool) -> SetSource | None:
    """Return what reads the eligible actions of a source; None where every action always is eligible.

    Parameters
    ----------
    spec
        Spec of the dataset.
    files
        Files of the calendar or of the candidates, where the spec has either.
    zones
        Record of the times that say their zone, and of those that do not.
    listed
        Whether rows that break a rule are left out and listed.
    """
    display = spec.display
    if display.eligible is not None:
        return ListedSets(display.eligible, display.action)
    if spec.candidates is not None:
        candidates = CandidateSets(spec, files, listed=listed)
        if not listed:
            candidates.breaches.refuse()
        return candidates
    if spec.action or spec.calendar is not None:
        flights = given_flights(spec, zones) if spec.action else read_flights(spec, files, zones)
        return CalendarSets(flights, display.time, display.action)
    return None


def set_breaches(sets: SetSource | None, *, limited: bool, listed: bool) -> list[Breaches]:
    """Return the breaches of the table of candidates, once all displays are known; none of other sets.

    Parameters
    ----------
    sets
        Reader of the sets, which has checked all displays.
    limited
        Whether only the first displays were read, so that some candidates belong to none of them.
    listed
        Whether rows that break a rule are left out and listed; else they are refused.
    """
    if not isinstance(sets, CandidateSets):
        return []
    if not limited:
        sets.see_others()
    if not listed:
        sets.breaches.refuse()
    return [sets.breaches]
