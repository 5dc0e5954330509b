"""World one: virtual time, latency, churn and faults, all from one seed."""
