"""The commands of the inference stage, and the playground, with every mistake that they can meet.

Mistakes of requests are in test_serving_commands.py, where a server runs; those of pictures in the tests of
the playground.
"""

from mistakes import KEY, MISSING, NO_IMAGES, NO_KEY, OUTPUT, PASSPHRASE, REST, SMALL, TYPE, checks_of

EXPORT = ["model.safetensors", *SMALL]

# command -> mistake -> calls, each with what must be said
MISTAKES = {
    "export": {
        MISSING: [
            (["missing"], "missing cannot be read: it does not exist"),
            ([*EXPORT, "--delivery", "missing"], "missing does not exist"),
        ],
        TYPE: [
            (["text.txt"], "text.txt is not a checkpoint"),
            ([*EXPORT, "--delivery", "empty"], "empty"),
        ],
        KEY: [([*EXPORT, "--delivery", "other"], "give the delivery that it was trained on")],
        OUTPUT: [(EXPORT, None)],
        REST: [
            (["model.safetensors"], "--network"),
            (["model.safetensors", "--network", "my_network:few"], "model.safetensors"),
        ],
    },
    "serve": {
        MISSING: [
            (["missing.onnx"], "missing.onnx cannot be read: it does not exist"),
        ],
        TYPE: [
            (["text.txt"], "text.txt is not an ONNX file"),
            (["front.onnx"], "front.onnx is an ONNX file, but not a network to serve"),
        ],
    },
    "playground": {
        REST: [],
    },
}

# Why a mistake is not in the table above.
DOES_NOT_APPLY = {
    "export": NO_IMAGES | {PASSPHRASE},
    "serve": NO_KEY | NO_IMAGES | {OUTPUT},
    "playground": NO_KEY | NO_IMAGES | {MISSING, TYPE, OUTPUT},  # takes no file on the command line
}


test_a_mistake_is_one_sentence_and_nothing_is_left_behind, test_every_mistake_is_made_or_cannot_be = (
    checks_of(MISTAKES, DOES_NOT_APPLY)
)
