"""The key lives here. Nothing on the developer's side may reach this package."""
