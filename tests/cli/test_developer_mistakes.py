"""The developer's commands with every mistake that they can meet."""

from mistakes import (
    CONV,
    EMPTY,
    IMAGE,
    KEY,
    MISSING,
    NAN,
    NO_KEY,
    OUTPUT,
    PASSPHRASE,
    REST,
    SHAPE,
    SIDES,
    SMALL,
    TEST,
    TYPE,
    checks_of,
)

# command -> mistake -> calls, each with what must be said
MISTAKES = {
    "export-layer": {
        MISSING: [
            (["--network", "missing.pt", *SIDES, *CONV], "missing.pt cannot be read: it does not exist"),
            (
                ["--network", "my_network:small", *SIDES, "--weights", "missing.pt"],
                "missing.pt cannot be read",
            ),
            (["--network", "nowhere:small", *SIDES], "module 'nowhere' cannot be imported"),
            (["--network", "my_network:missing", *SIDES], "has no function 'missing'"),
            (
                ["--network", "my_network.py:small", *SIDES],
                "names a file, and a module is needed here: write my_network:small, without .py",
            ),
        ],
        TYPE: [
            (["--network", "text.pt", *SIDES, *CONV], "text.pt holds no weights, or it is damaged"),
            (
                ["--network", "text.safetensors", *SIDES, *CONV],
                "text.safetensors holds no weights, or it is damaged",
            ),
            (["--network", "my_network:small", *SIDES, "--weights", "text.pt"], "text.pt holds no weights"),
            (
                ["--network", "my_network:small", *SIDES, "--weights", "text.txt"],
                "text.txt is not a file of weights",
            ),
            (
                ["--network", "layer.safetensors", *SIDES, *CONV],
                "layer.safetensors is already a first layer",
            ),
            (["--network", "model.safetensors", *SIDES, *CONV], "was trained on morphed data"),
        ],
        NAN: [(["--network", "nan.pt", *SIDES, *CONV], "its weight has a NaN or an infinity")],
        SHAPE: [
            (["--network", "my_network:small", "--input-shape", "3x9x9"], "does not run on a batch"),
            (
                ["--network", "weights.pt", "--input-shape", "5x8x8"],
                "no weight that takes samples of 5x8x8",
            ),
            (
                ["--network", "my_network:small", *SIDES, "--mean", "0.5,0.5", "--std", "0.5"],
                "mean has 2 values and the input 3 channels: give one, or one per channel",
            ),
            (
                ["--network", "my_network:small", "--input-shape", "8x8x3"],
                "does not run on a batch of shape (3, 8, 8, 3): channels come first, so try 3x8x8",
            ),
            (
                ["--network", "weights.pt", "--input-shape", "8x8x3"],
                "no weight that takes samples of 8x8x3: channels come first, so try 3x8x8",
            ),
        ],
        REST: [
            (
                ["--network", "twins.safetensors", *SIDES, *CONV],
                "has 2 weights that could be the first layer's: give ",
            ),
            (
                ["--network", "weights.pt", *SIDES],
                "does not say how the convolution 'a.weight' strides and pads",
            ),
            (
                ["--network", "weights.pt", *SIDES, *CONV, "--tensor", "b"],
                "weights.pt has no weight 'b': it has a.weight",
            ),
            (["--network", "my_network:broken", *SIDES], "could not make a model"),
            (["--network", "my_network:nothing", *SIDES], "not a torch.nn.Module"),
            (["--network", "my_network:normalising", *SIDES], "goes through native_batch_norm"),
            (["--network", "lenet", *SIDES], "no built-in network 'lenet'"),
        ],
        OUTPUT: [(["--network", "my_network:small", *SIDES], None)],
    },
    "train": {
        MISSING: [
            (["nowhere"], "nowhere does not exist"),
            (["delivery", *SMALL, "--weights", "missing.pt"], "missing.pt cannot be read"),
        ],
        TYPE: [
            (["text.txt"], "text.txt is a file, and a folder is needed here"),
            (["requests", *SMALL], "requests came without an augmented layer"),
            (["unlabelled", *SMALL], "unlabelled has no labels to learn from"),
            (["delivery", *SMALL, "--weights", "text.pt"], "text.pt holds no weights"),
        ],
        EMPTY: [(["empty"], "empty has no manifest.json")],
        IMAGE: [(["damaged", *SMALL], "damaged/data/test-00000-of-00001.parquet")],
        SHAPE: [
            (["delivery", "--network", "small_resnet"], "does not fit"),
            (["delivery", *SMALL, "--weights", "weights.pt"], "weights.pt does not fit the model"),
            (
                ["delivery", "--network", "my_network:other", "--weights", "model.safetensors"],
                "the augmented layer does not fit layer '0'",
            ),
        ],
        KEY: [
            (
                ["other", *SMALL, "--weights", "model.safetensors"],
                "whose channels come in another order: give weights that were trained on plain data",
            ),
        ],
        REST: [
            (["delivery", "--network", "lenet"], "no built-in network 'lenet'"),
            (["delivery", *SMALL, "--device", "toaster"], "device 'toaster' cannot be used here"),
            (
                ["delivery", *SMALL, "--epochs", 1, "--out", "model.safetensors"],
                "model.safetensors exists already, with 1 epoch: ask for more, choose another name, or",
            ),
            (
                ["delivery", *SMALL, "--seed", 5, "--out", "model.safetensors"],
                "model.safetensors exists already, and was made with seed = 0: choose another name, or "
                "replace it: give --force",
            ),
            (
                ["delivery", "--network", "my_network:few"],
                "the network tells 4 classes apart and the data has 10: build it for 10",
            ),
        ],
        OUTPUT: [(["delivery", *SMALL], None)],
    },
    "predict": {
        MISSING: [
            (
                ["delivery", "--checkpoint", "missing.safetensors", *TEST],
                "missing.safetensors cannot be read",
            ),
            (["nowhere", *SMALL], "nowhere does not exist"),
        ],
        TYPE: [
            (["delivery", "--checkpoint", "text.txt", *TEST], "text.txt is not a checkpoint"),
            (
                ["delivery", "--checkpoint", "layer.safetensors", *TEST],
                "layer.safetensors is not a checkpoint",
            ),
            (["text.txt", *SMALL], "text.txt is a file"),
        ],
        KEY: [(["other", *TEST, *SMALL], "was morphed with key")],
        EMPTY: [(["empty", *SMALL], "empty has no manifest.json")],
        IMAGE: [(["damaged", *TEST, *SMALL], "damaged/data/test-00000-of-00001.parquet")],
        SHAPE: [
            (
                ["delivery", *TEST, "--network", "my_network:other"],
                "model.safetensors does not hold a usable network",
            ),
        ],
        REST: [
            (["delivery", *SMALL], "delivery has 2 splits: give "),
            (["delivery", *TEST], "'my_network:small', which is not built in: give "),
            (["delivery", "--split", "none", *SMALL], "no split 'none'"),
        ],
        OUTPUT: [(["delivery", *TEST, *SMALL], None)],
    },
    "evaluate": {
        MISSING: [
            (["delivery", "--checkpoint", "missing.safetensors"], "missing.safetensors cannot be read"),
            (["nowhere", *SMALL], "nowhere does not exist"),
        ],
        TYPE: [
            (["delivery", "--checkpoint", "text.txt"], "text.txt is not a checkpoint"),
            (["delivery", "--checkpoint", "layer.safetensors"], "layer.safetensors is not a checkpoint"),
            (["text.txt", *SMALL], "text.txt is a file"),
            (["unlabelled", *SMALL], "unlabelled has no labels to compare with"),
            (
                ["delivery", "--checkpoint", "empty"],
                "empty is a folder, and a checkpoint is a file: give one",
            ),
        ],
        KEY: [(["other", *SMALL], "and model.safetensors was trained for key ")],
        EMPTY: [(["empty", *SMALL], "empty has no manifest.json")],
        IMAGE: [(["damaged", *SMALL], "damaged/data/test-00000-of-00001.parquet")],
        SHAPE: [
            (["delivery", "--network", "my_network:other"], "model.safetensors does not hold a usable"),
        ],
        REST: [
            (["delivery"], "'my_network:small', which is not built in: give --network"),
            (["delivery", "--split", "none", *SMALL], "delivery has no split 'none': it has"),
            (["delivery", *SMALL, "--device", "toaster"], "device 'toaster' cannot be used here"),
        ],
    },
}

# Why a mistake is not in the table above.
DOES_NOT_APPLY = {
    "export-layer": NO_KEY | {EMPTY, IMAGE},  # reads a network
    "train": {PASSPHRASE, NAN},  # a delivery has no NaN
    "evaluate": {PASSPHRASE, NAN, OUTPUT},  # writes nothing
    "predict": {PASSPHRASE, NAN},
}


test_a_mistake_is_one_sentence_and_nothing_is_left_behind, test_every_mistake_is_made_or_cannot_be = (
    checks_of(MISTAKES, DOES_NOT_APPLY)
)
