"""`python -m tests.bench`: run and compile times beside NumPy's, on one thread.

Give `OPENBLAS_NUM_THREADS=1` and pin the process to one core, or NumPy's products use more threads than ours.
"""

from __future__ import annotations

import argparse

from tests.bench.measure import Measurement, measure, measure_network, rank_correlation
from tests.bench.table import table
from tests.bench.workloads import NETWORKS, WORKLOADS


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Run and compile times, one thread.")
    parser.add_argument("--seconds", type=float, default=1.5, help="what to measure each workload for")
    parser.add_argument("--only", default="", help="only workloads whose name contains this")
    options = parser.parse_args()
    seconds: float = options.seconds
    only: str = options.only
    measurements: list[Measurement] = [measure(each, seconds) for each in WORKLOADS if only in each.name]
    measurements += [measure_network(name, seconds) for name in NETWORKS if only in name]
    print(table(measurements))
    if len(measurements) > 2:
        print(f"rank correlation of estimates and times: {rank_correlation(measurements):.2f}")


if __name__ == "__main__":
    main()
