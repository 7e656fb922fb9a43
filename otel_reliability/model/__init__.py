"""The values that pass between the stages: frozen, small, and free of any logic but their own.

`RawSpan` leaves the sources, `AgentSpan` the conventions, `Run` the assembly, `Row` is what a
window keeps of a run. This folder imports nothing of ours.
"""
