import subprocess
import sys

HEAVY = ["polars", "pyarrow", "numpy", "pydantic", "numba", "scipy"]


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = f"import sys, evaluator.datasets as d; d.load; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
