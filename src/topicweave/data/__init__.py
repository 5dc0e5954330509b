"""Real data: readers, samplers, availability traces and latency networks."""
