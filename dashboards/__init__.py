"""The Grafana dashboards, the alerts and their runbooks, made from the tables of what the package
emits.
"""
