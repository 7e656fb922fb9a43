"""Contrasts of runs: what differs between two sets of runs of an agent, with a bounded rate of
false findings.

`sample` is the part of a run that is kept for it, `features` are what a run can have, `compare`
contrasts two sets of runs, `why` those that fail with the others,
`sentences` are the findings in words. The statistics are in `statistics.contrast`.
"""
