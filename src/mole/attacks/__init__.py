"""The red team: attacks on morphed data and augmented layers, each with the view of one attacker."""

from mole.attacks import channel_fingerprint
from mole.attacks.attack import Attack

ATTACKS: tuple[Attack, ...] = (channel_fingerprint.ATTACK,)
