"""Statistics that metrics, change detection and reports share. Pure functions of numbers and
sequences.

- `intervals`: Wilson's interval, the jackknife, Student's quantile.
- `resampling`: the bootstrap.
- `permutation`: permutation tests of two samples.
- `contrast`: two groups of runs in many features at once.
- `sequential`: tests of a mean that hold at every look.
- `significance`: p-values of several tests at once, and of the numbers of two groups of runs.
- `edits`: edit distances.

Only `resampling`, `permutation`, `contrast` and `sequential` need numpy, so import them where a
report is made, not where spans are received.
"""
