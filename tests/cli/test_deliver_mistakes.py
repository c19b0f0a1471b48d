"""`mole deliver` and `mole morph` with every mistake that they can meet."""

from mistakes import (
    EMPTY,
    IMAGE,
    KEY,
    LAYER,
    LOCKED,
    MINE,
    MISSING,
    NAN,
    OUTPUT,
    PASSPHRASE,
    REST,
    SHAPE,
    TYPE,
    checks_of,
)

# command -> mistake -> calls, each with what must be said
MISTAKES = {
    "deliver": {
        MISSING: [
            (["nowhere", *LAYER, *MINE], "nowhere does not exist"),
            (["data.npz", "--layer", "missing", *MINE], "missing cannot be read"),
            (["data.npz", *LAYER, "--key", "missing"], "missing cannot be read"),
        ],
        TYPE: [
            (["text.txt", *LAYER, *MINE], "text.txt is not of a kind that can be read"),
            (["cut.npz", *LAYER, *MINE], "cut.npz is not a readable .npz file"),
            (["data.npz", "--layer", "text.txt", *MINE], "text.txt is not a layer file"),
            (
                ["data.npz", "--layer", "delivery/augmented-layer.safetensors", *MINE],
                "a first layer is needed",
            ),
            (["data.npz", *LAYER, "--key", "text.txt"], "text.txt is not a key"),
        ],
        PASSPHRASE: [
            (["data.npz", *LAYER, *LOCKED], "locked.key cannot be decrypted: the passphrase is wrong"),
            (["data.npz", *LAYER, "--key", "locked.key"], "locked.key needs a passphrase"),
            (["data.npz", *LAYER, "--key", "my.key"], "my.key is encrypted for age recipients"),
            (
                ["data.npz", *LAYER, "--key", "my.key", "--identity", "wrong-identity.txt"],
                "the identity is wrong",
            ),
        ],
        KEY: [
            (
                ["data.npz", *LAYER, "--key", "wide.key", "--identity", "identity.txt"],
                "give the key for this",
            ),
            (
                [
                    "data.npz",
                    *LAYER,
                    "--key",
                    "other.key",
                    "--identity",
                    "identity.txt",
                    "--out",
                    "delivery",
                ],
                "delivery holds another delivery already",
            ),
        ],
        EMPTY: [(["empty", *LAYER, *MINE], "empty is empty")],
        IMAGE: [(["photos", *LAYER, *MINE, "--no-class-names"], "photos/cat/2.png cannot be used")],
        NAN: [(["nan.npz", *LAYER, *MINE], "NaN")],
        SHAPE: [(["large.npz", *LAYER, *MINE], "3x9x9 and the layer takes 3x8x8: give --resize")],
        REST: [
            (["data.npz", *LAYER, *MINE, "--keep", "patient"], "no column 'patient'"),
            (["few.npz", *LAYER, *MINE, "--out", "delivery"], "delivery holds another delivery already"),
            (["data.npz", *LAYER, *MINE, "--out", "text.txt"], "text.txt is a file"),
            (
                ["data.npz", *LAYER, *MINE, "--engine", "ray", "--ray-address", "nonsense"],
                "'nonsense' is not an address of a Ray cluster: write it as host:port",
            ),
        ],
        OUTPUT: [(["data.npz", *LAYER, *MINE], None)],
    },
    "morph": {
        MISSING: [
            (["nowhere", *LAYER, *MINE], "nowhere does not exist"),
            (["data.npz", "--layer", "missing", *MINE], "missing cannot be read"),
            (["data.npz", *LAYER, "--key", "missing"], "missing cannot be read"),
        ],
        TYPE: [
            (["text.txt", *LAYER, *MINE], "text.txt is not of a kind that can be read"),
            (["data.npz", "--layer", "text.txt", *MINE], "text.txt is not a layer file"),
            (["data.npz", *LAYER, "--key", "text.txt"], "text.txt is not a key"),
        ],
        PASSPHRASE: [(["data.npz", *LAYER, *LOCKED], "locked.key cannot be decrypted: the passphrase is")],
        KEY: [
            (["data.npz", *LAYER, "--key", "wide.key", "--identity", "identity.txt"], "give the key for")
        ],
        EMPTY: [(["empty", *LAYER, *MINE], "empty is empty")],
        IMAGE: [(["photos", *LAYER, *MINE], "photos/cat/2.png cannot be used")],
        NAN: [(["nan.npz", *LAYER, *MINE], "NaN")],
        SHAPE: [(["large.npz", *LAYER, *MINE], "3x9x9 and the layer takes 3x8x8: give --resize")],
        OUTPUT: [(["data.npz", *LAYER, *MINE], None)],
    },
}

# Why a mistake is not in the table above.
DOES_NOT_APPLY = {
    "deliver": set(),
    "morph": set(),
}


test_a_mistake_is_one_sentence_and_nothing_is_left_behind, test_every_mistake_is_made_or_cannot_be = (
    checks_of(MISTAKES, DOES_NOT_APPLY)
)
