"""The provider's commands with every mistake that they can meet."""

from mistakes import (
    EMPTY,
    FOR_ME,
    IMAGE,
    KEY,
    LAYER,
    LOCKED,
    MINE,
    MISSING,
    NAN,
    NO_KEY,
    OUTPUT,
    PASSPHRASE,
    REST,
    SHAPE,
    TYPE,
    checks_of,
)

# command -> mistake -> calls, each with what must be said
MISTAKES = {
    "review": {
        MISSING: [
            (["data.npz", "--layer", "missing"], "missing cannot be read: it does not exist"),
            (["nowhere", *LAYER], "nowhere does not exist"),
        ],
        TYPE: [
            (["data.npz", "--layer", "text.txt"], "text.txt is not a layer file"),
            (["data.npz", "--layer", "my.key"], "my.key is a key, and a layer is needed here"),
            (["text.txt", *LAYER], "text.txt is not of a kind that can be read"),
        ],
        EMPTY: [(["empty", *LAYER], "empty is empty")],
        IMAGE: [(["photos", *LAYER], "photos/cat/2.png cannot be used")],
        NAN: [
            (
                ["nan.npz", *LAYER],
                "sample 0 of nan.npz:train cannot be used: pixels have a N",
            )
        ],
        SHAPE: [
            (
                ["large.npz", *LAYER],
                " and 2 more): the first is 3x9x9 and the layer takes 3x8x8: give --resize",
            ),
        ],
        OUTPUT: [(["data.npz", *LAYER], None)],
    },
    "keygen": {
        MISSING: [
            (["--layer", "missing", *FOR_ME], "missing cannot be read: it does not exist"),
            ([*LAYER, "--passphrase-file", "missing"], "missing cannot be read"),
            ([*LAYER, *FOR_ME, "--data", "nowhere"], "nowhere does not exist"),
        ],
        TYPE: [
            (["--layer", "text.txt", *FOR_ME], "text.txt is not a layer file"),
            ([*LAYER, *FOR_ME, "--data", "text.txt"], "text.txt is not of a kind"),
        ],
        EMPTY: [([*LAYER, *FOR_ME, "--data", "empty"], "empty is empty")],
        IMAGE: [([*LAYER, *FOR_ME, "--data", "photos"], "photos/cat/2.png cannot be used")],
        NAN: [
            (
                [*LAYER, *FOR_ME, "--data", "nan.npz"],
                "sample 0 of nan.npz:train cannot be used",
            )
        ],
        SHAPE: [
            (
                [*LAYER, *FOR_ME, "--data", "large.npz"],
                " and 2 more): the first is 3x9x9 and the layer takes 3x8x8: give --resize",
            ),
            ([*LAYER, *FOR_ME, "--kappa", 5], "kappa = 5 does not divide"),
            ([*LAYER, *FOR_ME, "--data", "few.npz"], "the sample has no variance"),
        ],
        REST: [
            (
                [*LAYER, "--out", "my.key", *FOR_ME],
                "my.key exists already, and a key is never",
            ),
            ([*LAYER], "needs a passphrase: give --passphrase-file"),
            ([*LAYER, "--passphrase-file", "empty.txt"], "empty.txt has no passphrase"),
            ([*LAYER, "--recipient", "me"], "a recipient is not one that age knows"),
        ],
        OUTPUT: [([*LAYER, *FOR_ME], None)],
    },
    "recover": {
        MISSING: [
            (["missing", *MINE], "missing does not exist"),
            (["delivery", "--key", "missing"], "missing cannot be read"),
        ],
        TYPE: [
            (["text.txt", *MINE], "text.txt is a file"),
            (["delivery", "--key", "text.txt"], "text.txt is not a key"),
        ],
        PASSPHRASE: [(["delivery", *LOCKED], "locked.key cannot be decrypted: the passphrase is wrong")],
        KEY: [(["delivery", "--key", "other.key", "--identity", "identity.txt"], "use that key")],
        EMPTY: [(["empty", *MINE], "empty has no manifest.json")],
        IMAGE: [(["damaged", *MINE], "damaged/data/test-00000-of-00001.parquet")],
        REST: [
            (["delivery", *MINE, "--out", "data.npz"], "data.npz exists already: choose another name, or")
        ],
        OUTPUT: [(["delivery", *MINE], None)],
    },
    "ledger": {
        MISSING: [(["missing"], "missing does not exist: give a key's file, or the 32 digits")],
        TYPE: [
            (["text.txt"], "text.txt is not a key"),
            (["my.key.ledger"], "my.key.ledger is the ledger itself: give the key's file, my.key"),
        ],
        PASSPHRASE: [(["locked.key", "--passphrase-file", "wrong.txt"], "the passphrase is wrong")],
        EMPTY: [(["empty"], "empty cannot be read: it is a folder")],
    },
    "audit": {
        MISSING: [
            (["missing", *MINE], "missing does not exist"),
            (["delivery", "--key", "missing"], "missing cannot be read"),
            (["delivery", *MINE, "--data", "nowhere"], "nowhere does not exist"),
            (["--layer", "missing"], "missing cannot be read"),
        ],
        TYPE: [
            (["text.txt"], "text.txt is a file"),
            (["delivery", "--layer", "text.txt"], "text.txt is not a layer file"),
            (
                ["delivery", "--layer", "weights.pt"],
                "weights.pt is a file of PyTorch's weights, and a layer",
            ),
            (["delivery", "--key", "text.txt"], "text.txt is not a key"),
        ],
        PASSPHRASE: [(["delivery", *LOCKED], "locked.key cannot be decrypted: the passphrase is wrong")],
        KEY: [(["delivery", "--key", "other.key", "--identity", "identity.txt"], "use that key")],
        EMPTY: [
            (["empty"], "empty has no manifest.json"),
            (["delivery", *MINE, "--data", "empty"], "empty is empty"),
        ],
        IMAGE: [(["delivery", *MINE, "--public", "photos"], "photos/cat/2.png cannot be used")],
        NAN: [(["delivery", *MINE, "--public", "nan.npz"], "sample 0 of nan.npz:train cannot be used")],
        SHAPE: [
            (
                ["delivery", *MINE, "--public", "large.npz"],
                "it is 3x9x9 and the layer takes 3x8x8: bring public images to the size",
            ),
            (["--layer", "two-colours.safetensors"], "no bundled images of shape 2x8x8"),
        ],
        REST: [(["delivery", "--out", "empty"], "empty exists already")],
        OUTPUT: [(["delivery", *MINE], None)],
    },
}

# Why a mistake is not in the table above.
DOES_NOT_APPLY = {
    "review": NO_KEY,
    "keygen": NO_KEY,  # makes one
    "recover": {NAN, SHAPE},  # a delivery has neither: test_damage changes every byte of one
    "audit": set(),
    "ledger": {KEY, IMAGE, NAN, SHAPE, OUTPUT},  # reads a key and its ledger, and writes nothing
}


test_a_mistake_is_one_sentence_and_nothing_is_left_behind, test_every_mistake_is_made_or_cannot_be = (
    checks_of(MISTAKES, DOES_NOT_APPLY)
)
