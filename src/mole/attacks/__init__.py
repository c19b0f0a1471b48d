"""The red team: attacks on morphed data and augmented layers, each with the view of one attacker."""

from mole.attacks import (
    blank_images,
    block_statistics,
    brute_force_core,
    channel_fingerprint,
    channel_search,
    cross_delivery,
    delivered_or_not,
    feature_view,
    independent_components,
    known_image,
    known_pairs,
    learned_inversion,
    linkage,
    membership,
    moment_matching,
    nearest_features,
    noisy_inversion,
    overlap,
    pca_matching,
    property_inference,
    reversing,
    unknown_kernels,
)
from mole.attacks.tools.attack import Attack

# The quick ones first, so that even a short audit shows most; the hopeless one last.
ATTACKS: tuple[Attack, ...] = (
    linkage.ATTACK,
    cross_delivery.ATTACK,
    blank_images.ATTACK,
    overlap.ATTACK,
    channel_fingerprint.ATTACK,
    known_image.ATTACK,
    feature_view.ATTACK,
    unknown_kernels.ATTACK,
    pca_matching.ATTACK,
    block_statistics.ATTACK,
    moment_matching.ATTACK,
    channel_search.ATTACK,
    independent_components.ATTACK,
    membership.ATTACK,
    reversing.ATTACK,
    known_pairs.ATTACK,
    learned_inversion.ATTACK,
    brute_force_core.ATTACK,
)

# On the rows of protected deliveries, the quick ones first.
PROTECTED_ATTACKS: tuple[Attack, ...] = (
    nearest_features.ATTACK,
    delivered_or_not.ATTACK,
    property_inference.ATTACK,
    noisy_inversion.ATTACK,
)
