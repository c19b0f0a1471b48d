"""The commands around protected deliveries with every mistake that they can meet."""

from mistakes import (
    EMPTY,
    IMAGE,
    KEY,
    LAYER,
    MINE,
    MISSING,
    NAN,
    NO_IMAGES,
    NO_KEY,
    OUTPUT,
    PASSPHRASE,
    REST,
    SHAPE,
    SIDES,
    TYPE,
    checks_of,
)

MAKE = ["make", "--network", "my_network:small", *SIDES]
DATA = ["--public", "data.npz", "--dim", 4]
HOME = ["--front", "front.onnx", "--head", "head.onnx"]
SIMILAR = ["frontier", "--public", "data.npz"]

# command -> mistake -> calls, each with what must be said
MISTAKES = {
    "front": {
        MISSING: [
            ([*MAKE, "--public", "missing"], "missing does not exist"),
            ([*MAKE, *DATA, "--weights", "missing.pt"], "missing.pt cannot be read: it does not exist"),
            (["make", "--network", "nowhere:small", *SIDES, *DATA], "module 'nowhere' cannot be imported"),
        ],
        TYPE: [
            ([*MAKE, "--public", "text.txt"], "text.txt is not of a kind that can be read"),
            ([*MAKE, *DATA, "--weights", "text.pt"], "text.pt holds no weights"),
        ],
        EMPTY: [([*MAKE, "--public", "empty"], "empty is empty")],
        IMAGE: [([*MAKE, "--public", "photos", "--dim", 1], "photos/cat/2.png cannot be used")],
        NAN: [([*MAKE, "--public", "nan.npz", "--dim", 2], "pixels have a NaN")],
        SHAPE: [
            ([*MAKE, "--public", "large.npz", "--dim", 2], "it is 3x9x9 and the front takes 3x8x8"),
            ([*MAKE, *DATA, "--mean", "0.5,0.5", "--std", "0.5"], "mean has 2 values"),
        ],
        REST: [
            ([*MAKE, "--public", "data.npz"], "has 100 images, and 128 features need more than 128"),
            (["make", "--network", "my_network:nothing", *SIDES, *DATA], "not a torch.nn.Module"),
        ],
        OUTPUT: [([*MAKE, *DATA], None)],
    },
    "export-head": {
        MISSING: [(["missing", *LAYER, *MINE], "missing cannot be read: it does not exist")],
        TYPE: [
            (["text.txt", *LAYER, *MINE], "text.txt is not a checkpoint"),
            (["model.safetensors", *LAYER, *MINE], "only a linear head can be used at home"),
        ],
        OUTPUT: [(["model.safetensors", *LAYER, *MINE], None)],
    },
    "calibrate": {
        MISSING: [
            (["missing", *HOME], "missing does not exist"),
            (["data.npz", "--front", "missing", "--head", "head.onnx"], "missing cannot be read"),
            (["data.npz", "--front", "front.onnx", "--head", "missing"], "missing cannot be read"),
        ],
        TYPE: [
            (["data.npz", "--front", "text.txt", "--head", "head.onnx"], "text.txt is not an ONNX file"),
            (["data.npz", "--front", "front.onnx", "--head", "front.onnx"], "an ONNX file, but not a head"),
        ],
        EMPTY: [(["empty", *HOME], "empty is empty")],
        IMAGE: [(["photos", *HOME], "photos/cat/2.png cannot be used")],
        NAN: [(["nan.npz", *HOME], "pixels have a NaN")],
        SHAPE: [(["large.npz", *HOME], "it is 3x9x9")],
        REST: [
            (
                ["data.npz", "--front", "other-front.onnx", "--head", "head.onnx"],
                "features of another front",
            ),
            (
                ["photos", "--front", "front.onnx", "--head", "nameless.onnx"],
                "2 classes without names apart, and the images are of cat: give images of the head's",
            ),
            (["bare.npz", *HOME], "images without labels cannot calibrate a head"),
            (["data.npz", *HOME], "18 labelled images are too few to calibrate"),
        ],
        OUTPUT: [(["data.npz", *HOME], None)],
    },
    "experiment": {
        MISSING: [
            ([*SIMILAR, "--data", "missing"], "missing does not exist"),
            (["frontier", "--data", "data.npz", "--public", "missing"], "missing does not exist"),
        ],
        TYPE: [([*SIMILAR, "--data", "text.txt"], "text.txt is not of a kind that can be read")],
        EMPTY: [([*SIMILAR, "--data", "empty"], "empty is empty")],
        IMAGE: [([*SIMILAR, "--data", "photos"], "photos")],
        NAN: [([*SIMILAR, "--data", "nan.npz"], "nan.npz")],
        SHAPE: [([*SIMILAR, "--data", "large.npz"], "large.npz")],
        OUTPUT: [(["frontier", "--preset", "tiny"], None)],
    },
}

# Why a mistake is not in the table above.
DOES_NOT_APPLY = {
    "front": NO_KEY,
    "export-head": NO_IMAGES | {PASSPHRASE, KEY},  # with real heads: tests/provider/test_heads.py
    "calibrate": NO_KEY,
    "experiment": NO_KEY,
}


test_a_mistake_is_one_sentence_and_nothing_is_left_behind, test_every_mistake_is_made_or_cannot_be = (
    checks_of(MISTAKES, DOES_NOT_APPLY)
)
