"""Has this agent's behaviour changed? Told with a bounded rate of false alarms, and without labels.

A *unit* (a run, or a session) gives a few numbers, the *signals*. Of each number the detector asks how it ranks among the
agent's latest ones. While nothing changes, ranks are even; a bet that they are not (the *jumper*) then wins nothing on
average, and Shiryaev and Roberts' sum of such bets passes c no sooner than once in c units. When behaviour changes, the
bet grows fast and the sum crosses.

One concept a file: `units` (what is judged), `signals` (which numbers), `reference` (the path signal), `rank`,
`martingale`, `detector`, `blocks` (where the promise cannot hold), `alarm` (what is said), `monitor` (one detector an
agent), `recording` (a file judged offline) and `compare` (two files).

References: V. Vovk, A. Gammerman, G. Shafer, *Algorithmic Learning in a Random World*, 2nd ed. 2022, ch. 8;
V. Vovk, *Testing randomness online*, Statistical Science 36(4), 2021.
"""
