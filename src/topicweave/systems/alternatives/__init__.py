"""What one would pick instead of any of the papers' systems: they answer "why not just …?"."""
