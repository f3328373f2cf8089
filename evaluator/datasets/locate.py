"""Where the bundled dataset specs are."""

from __future__ import annotations

from pathlib import Path


def bundled_folder() -> Path:
    """Return ``_bundled`` in an installed wheel, the top-level ``datasets`` folder in a checkout."""
    here = Path(__file__).parent
    bundled = here / "_bundled"
    return bundled if bundled.is_dir() else here.parents[1] / "datasets"


def bundled_names() -> dict[str, Path]:
    """Return the spec of each bundled dataset: a folder each, but for the scenarios, which share one."""
    return bundled_logs() | bundled_scenarios()


def bundled_logs() -> dict[str, Path]:
    """Return the spec of each bundled dataset that has a folder of its own."""
    return {path.parent.name: path for path in bundled_folder().glob("*/spec.toml")}


def bundled_scenarios() -> dict[str, Path]:
    """Return the spec of each bundled scenario."""
    scenarios = (bundled_folder() / "synthetic").glob("*.toml")
    return {path.parent.name if path.stem == "spec" else path.stem: path for path in scenarios}
