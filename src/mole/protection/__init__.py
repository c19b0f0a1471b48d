"""Protected deliveries: at most so many bits about each image, for everybody, for ever.

    plain image -> front -> features -> clip -> noise -> grid -> morph, encode, deliver

The certificate rests on clip and noise alone, which the provider applies itself: the front is the
developer's, and nobody need trust it.
"""

from mole.protection.certificate import Certificate, bits_of_covariance, composed
from mole.protection.channel import FreshNoise, clip, release

__all__ = ["Certificate", "FreshNoise", "bits_of_covariance", "clip", "composed", "release"]
