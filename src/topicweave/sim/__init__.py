"""World one: the simulator, with virtual time, latency, churn and faults, all from one seed."""
