"""Change detection: has this agent's behaviour changed? With a bounded rate of false alarms, and
without labels.

An *observation* (a run, or a session) gives a few numbers, the *signals*. The detector ranks each
number among the agent's latest ones. While nothing changes, ranks are uniform; a bet that they are
not (the *jumper*) then wins nothing on average, and Shiryaev and Roberts' sum of such bets passes c
no sooner than once in c observations. When behaviour changes, the bet grows fast and the sum
crosses c.

`signals` defines the numbers, `reference` the path signal; `signal_state` and `detector` are the
detector of one agent, `task_order` the case in which it cannot hold its guarantee; `monitor` keeps
the detectors of all agents; `recording` evaluates a file; `alarm`, `result` and
`sentences` are what comes out. `to_data` and `from_data` convert states to values that MessagePack
and JSON can hold, named tuples among them.

References: V. Vovk, A. Gammerman, G. Shafer, *Algorithmic Learning in a Random World*, 2nd ed.
2022, ch. 8; V. Vovk, *Testing randomness online*, Statistical Science 36(4), 2021.
"""
