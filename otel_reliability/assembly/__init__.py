"""From agent spans to runs: a buffer per trace, assembled when it is due."""
