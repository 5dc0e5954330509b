"""What the papers measure against."""
