"""What a check of the log, and an audit on twins of it, say of the conditions under which a variant ships.

Both are read as their `to_dict` gives them: what ran just now and what lies in a folder are one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluator.checks.steadiness import MANY_LOST, OUTAGES
from evaluator.checks.wear_out import NAME as WEAR_OUT
from evaluator.comparisons.verdict import Candidate, Condition, Verdict


def with_checks(verdict: Verdict, found: Mapping[str, Any]) -> Verdict:
    """Return a verdict that knows whether the log is fit for replay.

    The check is what `evaluator.checks.run.CheckReport.to_dict` says of it.
    """
    failed = [of for of in found["checks"] if of["verdict"] == "fail"]
    warned = sum(of["verdict"] == "warn" for of in found["checks"])
    if failed:
        which = "the check" if len(failed) == 1 else "the checks"
        said = f"{which} {', '.join(of['name'] for of in failed)} failed: no number of this log can be believed"
        condition = Condition("checks", False, said, " ".join(of["remedy"] for of in failed if of["remedy"]))
    else:
        condition = _of_outage(found) or Condition(
            "checks", True, "no check of the log failed" + (f", {warned} warned" if warned else "")
        )
    verdict = verdict.with_condition([condition] * len(verdict.candidates))
    of_users = _of_users(found)
    return verdict if of_users is None else verdict.with_condition([of_users] * len(verdict.candidates))


def _of_outage(found: Mapping[str, Any]) -> Condition | None:
    """Return that many conversions may be lost, where a log is too short to tell an outage from a usual weekend."""
    gaps = next((of for of in found["checks"] if of["name"] == OUTAGES.name and of["verdict"] == "warn"), None)
    if gaps is None or gaps["numbers"]["lost_share"] < MANY_LOST:
        return None
    said = f"whether conversions are lost or stop on weekends is not known: {gaps['number']}, if they are"
    return Condition("checks", None, said, "a log of two weeks and more, or the missing conversions")


def _of_users(found: Mapping[str, Any]) -> Condition | None:
    """Return whether what users saw before is known not to matter, or allowed for; None where no users are known."""
    wear_out = next((of for of in found["checks"] if of["name"] == WEAR_OUT), None)
    column = None if wear_out is None else wear_out["numbers"].get("users")
    if wear_out is None or column is None:
        return None
    if wear_out["verdict"] == "pass":
        return Condition("users", True, f"rewards do not fall with what a {column} saw before")
    if wear_out["numbers"].get("earlier") == 0:
        return Condition("users", True, f"each {column} has one display")
    if found["options"].get("cluster_by") == column:
        return Condition("users", True, f"intervals are for new values of {column}")
    # A check that failed says itself what is to be done.
    settle = "" if wear_out["verdict"] == "fail" else f"`cluster_by='{column}'`"
    if wear_out["verdict"] == "not applicable":
        why = wear_out["what"]
        said = (
            f"whether rewards fall with what a {column} saw before is not known: {why[:1].lower()}{why[1:].rstrip('.')}"
        )
        return Condition("users", None, said, settle)
    return Condition("users", False, f"rewards fall with what a {column} saw before: {wear_out['number']}", settle)


def with_audit(verdict: Verdict, found: Mapping[str, Any]) -> Verdict:
    """Return a verdict that knows whether replays are biased on such logs, of each candidate that the audit is about.

    An audit that shows no bias takes no ship away: what it could have detected says how much its silence means.

    The audit is what `evaluator.audits.result.Audit.to_dict` says of it.
    """
    return verdict.with_condition([_of_audit(verdict, of, found) for of in verdict.candidates])


def _of_audit(verdict: Verdict, of: Candidate, found: Mapping[str, Any]) -> Condition | None:
    """Return what an audit found of a candidate; None where it says nothing of it."""
    if failed := [one for one in found.get("not_in_twins", ()) if one["verdict"] == "fail"]:
        names = ", ".join(one["name"] for one in failed)
        what = f"the log failed the checks {names}, and the audit's twins are drawn without that"
        return Condition("audit", False, what, " ".join(one["remedy"] for one in failed if one["remedy"]))
    lines = (of.line, verdict.baseline)
    if any(line.window.replace(",", "") != str(found["options"]["window"] or "none") for line in lines):
        return None
    two = {line.policy for line in lines}
    policies = [one for one in found["policies"] if one["policy"] in two]
    if biased := [one["policy"] for one in policies if one["biased"]]:
        what = f"on twins of the log replays of {' and '.join(biased)} are biased"
        return Condition("audit", False, what, "another sampler, or a log whose propensities are larger")
    pair = next((one for one in found["pairs"] if {one["first"], one["second"]} == two), None)
    if pair is None:
        return None
    smallest = pair["expected" if of.target == "expected" else "alone"]["difference"]
    unseen = {
        "bias": max((one["detectable_bias"] or 0.0 for one in policies), default=0.0), "difference": smallest or 0.0,
    }  # fmt: skip
    silence = " or ".join(f"a {name} below {size:.2g}" for name, size in unseen.items() if size)
    silence = f"; {silence} could have gone unseen" if silence else ""
    return Condition("audit", True, f"replays show no bias on twins of the log{silence}")
