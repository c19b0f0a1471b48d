"""What the provider has, and how it becomes plain data."""
