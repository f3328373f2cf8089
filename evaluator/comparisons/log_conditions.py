"""What a check of the log, and an audit on twins of it, say of the conditions under which a variant ships.

Both are read as their `to_dict` gives them: what ran just now and what lies in a folder are one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluator.comparisons.verdict import Candidate, Condition, Verdict


def with_checks(verdict: Verdict, found: Mapping[str, Any]) -> Verdict:
    """Return a verdict that knows whether the log is fit for replay.

    Parameters
    ----------
    verdict
        Verdict of a comparison.
    found
        Report of a check of its log, as of `evaluator.checks.run.CheckReport.to_dict`.
    """
    failed = [of for of in found["checks"] if of["verdict"] == "fail"]
    warned = sum(of["verdict"] == "warn" for of in found["checks"])
    if failed:
        which = "the check" if len(failed) == 1 else "the checks"
        said = f"{which} {', '.join(of['name'] for of in failed)} failed: no number of this log can be believed"
        condition = Condition("checks", False, said, " ".join(of["do"] for of in failed if of["do"]))
    else:
        condition = Condition("checks", True, "no check of the log failed" + (f", {warned} warned" if warned else ""))
    return verdict.with_condition([condition] * len(verdict.candidates))


def with_audit(verdict: Verdict, found: Mapping[str, Any]) -> Verdict:
    """Return a verdict that knows what replays can tell on such logs, of each candidate that the audit is about.

    A rule that asks for a difference is not met on a log that would not show it: what is found there all the same is
    as a rule larger than what is true (Gelman, Carlin. Beyond power calculations. Perspectives on Psychological Science
    9(6), 2014).

    Parameters
    ----------
    verdict
        Verdict of a comparison.
    found
        Audit of its log, as of `evaluator.audits.result.Audit.to_dict`.
    """
    known = [_of_audit(verdict, of, found) for of in verdict.candidates]
    if not any(known):
        return verdict
    silent = Condition("audit", None, "the audit is not about it", "an audit of it and of the baseline")
    return verdict.with_condition([of or silent for of in known])


def _of_audit(verdict: Verdict, of: Candidate, found: Mapping[str, Any]) -> Condition | None:
    lines = (of.line, verdict.baseline)
    if any(line.window.replace(",", "") != str(found["options"]["window"] or "none") for line in lines):
        return None
    two = {line.policy for line in lines}
    biased = [one["policy"] for one in found["policies"] if one["policy"] in two and one["biased"]]
    if biased:
        said = f"on twins of the log replays of {' and '.join(biased)} are biased"
        return Condition("audit", False, said, "another sampler, or a log whose propensities are larger")
    if failed := [one for one in found.get("not_in_twins", ()) if one["verdict"] == "fail"]:
        names = ", ".join(one["name"] for one in failed)
        said = f"the log failed the checks {names}, and the audit's twins are drawn without that"
        return Condition("audit", False, said, " ".join(one["do"] for one in failed if one["do"]))
    pair = next((one for one in found["pairs"] if {one["first"], one["second"]} == two), None)
    if pair is None:
        return None
    power = pair["expected" if of.target == "expected" else "alone"]
    smallest, asked = power["difference"], verdict.rule.limit
    shows = "" if smallest is None else f", which tell a difference of {smallest:.3g} on 80 % of such logs"
    if verdict.rule.asked and (smallest is None or smallest > asked):
        said = f"such a log is too small for the {asked:g} asked for: replays are without bias on its twins{shows}"
        return Condition("audit", False, said, "a longer log, or a rule that asks for what such a log can show")
    return Condition("audit", True, f"on twins of the log replays are without bias{shows}")
