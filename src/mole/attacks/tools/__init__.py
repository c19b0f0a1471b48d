"""What the attacks share: the protocol they follow, what each attacker sees, and their mathematics."""
