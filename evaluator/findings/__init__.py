"""Findings: the warnings, assumptions and notes of a result, each with a code that the catalogue explains."""
