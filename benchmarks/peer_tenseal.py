"""A first layer on encrypted images, with TenSEAL (CKKS). `peers.py` runs it in an environment of its own.

The data owner encrypts the 27 shifted planes of four images at a time, which fill a ciphertext; the
model's owner multiplies them by its weights and adds, 64 times. Parameters are the smallest with 128 bits
of security that leave four digits. Prints JSON: processor seconds and bytes of one image, the relative
error.
"""

import json
import statistics
import time

import numpy as np
import tenseal as ts

IMAGES, CHANNELS, SIDE, ROUNDS = 4, 64, 32, 3
DEGREE, MODULI, SCALE = 8192, (40, 30, 40), 2**30


def planes_of(images: np.ndarray) -> np.ndarray:
    """What each weight of a 3x3 kernel with padding 1 meets: (27, images x positions)."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    shifted = [
        padded[:, channel, down : down + SIDE, right : right + SIDE].ravel()
        for channel in range(3)
        for down in range(3)
        for right in range(3)
    ]
    return np.stack(shifted)


def main() -> None:
    """Measure, and print the result."""
    rng = np.random.default_rng(0)
    planes = planes_of(rng.normal(size=(IMAGES, 3, SIDE, SIDE)))
    weights = rng.normal(size=(CHANNELS, 27))
    context = ts.context(ts.SCHEME_TYPE.CKKS, poly_modulus_degree=DEGREE, coeff_mod_bit_sizes=list(MODULI))
    context.global_scale = SCALE
    provider, developer = [], []
    for _ in range(ROUNDS):
        start = time.process_time()
        encrypted = [ts.ckks_vector(context, plane) for plane in planes]
        middle = time.process_time()
        features = [weighted_sum(encrypted, kernel) for kernel in weights]
        developer.append(time.process_time() - middle)
        provider.append(middle - start)
    found = np.array([feature.decrypt() for feature in features])
    expected = weights @ planes
    result = {
        "version": ts.__version__,
        "images_at_once": IMAGES,
        "provider_s": statistics.median(provider) / IMAGES,
        "developer_s": statistics.median(developer) / IMAGES,
        "bytes": sum(len(vector.serialize()) for vector in encrypted) // IMAGES,
        "bytes_of_features": sum(len(vector.serialize()) for vector in features) // IMAGES,
        "error": float(np.linalg.norm(found - expected) / np.linalg.norm(expected)),
    }
    print(json.dumps(result))


def weighted_sum(vectors: list[ts.CKKSVector], weights: np.ndarray) -> ts.CKKSVector:
    """One channel of features."""
    total = vectors[0] * float(weights[0])
    for vector, weight in zip(vectors[1:], weights[1:], strict=True):
        total += vector * float(weight)
    return total


if __name__ == "__main__":
    main()
