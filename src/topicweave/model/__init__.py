"""Plain data every other part speaks in: identifiers, events, workloads."""
