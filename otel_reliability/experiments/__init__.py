"""Experiments: repeated attempts at given tasks, until targets are decided.

- `tasks`: the file of tasks. `expectation`: what an output must be.
- `environment`: what an agent is given, so that its spans name the attempt.
- `receiver`: the OTLP endpoints that an agent exports to. `agent`: one attempt by a process.
- `rewriters`, `faults`, `fault_proxy`: how an attempt is disturbed.
- `success`: whether an attempt succeeded, and by which rule. `journal`: the recording.
- `decision`: targets that are tested while the experiment runs. `experiment`: the loop.
"""
