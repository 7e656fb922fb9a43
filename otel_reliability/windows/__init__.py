"""Which runs count now: per agent, one or more windows of rows, and the metrics they keep up to
date.

The order of runs is by end time, then run id, never by arrival, so a window is a function of the
runs that were added to it.
"""
