"""`python -m tests.frontends.tinygrad`: have tinygrad compute the results that the tests compare with."""

from __future__ import annotations

from tensorkiln.frontends.tinygrad.arrays import array_of

from .corpus import FAMILIES, RESULTS, called, record

results = {
    f"{family}/{name}": [array_of(each) for each in called(family, name)[1]]
    for family, recipes in FAMILIES.items()
    for name in recipes
}
record(results)
print(f"{len(results)} functions, {RESULTS.stat().st_size} bytes in {RESULTS.name}")
