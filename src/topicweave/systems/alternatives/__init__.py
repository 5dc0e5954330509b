"""Common alternatives to the papers' systems. They answer the question "why not just …?"."""
