"""The red team: attacks on morphed data and augmented layers, each with the view of one attacker."""
