"""Parts that metrics share. Import metrics from `otel_reliability.metrics`, not from here."""
