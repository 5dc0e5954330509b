"""Plain data that all other packages use: identifiers, events, workloads."""
