"""How much is read of what somebody else has made: every bound, with its reason.

A file of a few hundred bytes can ask for gigabytes, or for an hour of work. What it asks for is compared
with these bounds, and with what the file could hold, before anything of that size is made. They lie far
above what the method can be used for, so that nobody meets them by accident.
"""

# A sample of 64 MB in 32 bits: 3 x 2364 x 2364. Beyond about 3 x 64 x 64 a dense augmented layer is tens of
# gigabytes, and sizes up to this one are only ever counted, not made.
MAX_ELEMENTS = 1 << 24

# Features of one sample, 256 MB in 32 bits: what 64 channels are on 1024 x 1024.
MAX_FEATURES = 1 << 26

# What a convolution gathers for one sample, or a weight with its groups written out: 512 MB in 32 bits. A
# kernel of 3 x 3 on three channels of 2048 x 2048 gathers 113 million numbers.
MAX_GATHERED = 1 << 27

# Stride and dilation: more than the side of any image here, and small enough for 64-bit sums.
MAX_STEP = 1 << 16

# Classes that labels may tell apart: a network has a row of weights for each, and is built for the largest
# label. The largest public sets of faces have some 600,000.
MAX_CLASSES = 1 << 20

# Samples of a split: their secret order is made in memory, and takes two gigabytes then.
MAX_SAMPLES = 1 << 28

# Views of a sample: it can be shifted by four pixels either way along two axes, and mirrored.
MAX_VIEWS = 2 * 9 * 9

# JSON from outside: objects in memory are some twenty times as large. A manifest of 200,000 files fits.
MAX_JSON_BYTES = 1 << 25

# A table of labels: thirty bytes a row, for as many images as can lie in a folder that is still listed.
MAX_TABLE_BYTES = 1 << 27
MAX_TABLE_ROWS = 1 << 22

# Pixels of one image, 8192 x 8192: 268 MB with transparency, and as much again while it is converted.
MAX_PIXELS = 1 << 26

# Bytes of one image file: no more than its pixels would take unpacked, with transparency in 16 bits.
MAX_IMAGE_BYTES = 1 << 29

# An image that is brought to the playground: a photograph of 50 million pixels has some 20 MB. What the
# page asks besides is a few words.
MAX_UPLOAD_BYTES = 1 << 25
MAX_ASKED_BYTES = 1 << 12

# Frames of one DICOM file: a slide of 150,000 x 150,000 pixels in tiles of 256 has a third of that. No way
# of storing a frame takes less than these bytes.
MAX_FRAMES = 1 << 20
LEAST_FRAME_BYTES = 2

# Unpacked data: real images shrink to a half or a tenth, drawings perhaps to a fiftieth; a bomb is a
# thousand times its size. Whatever is small when it is unpacked may be packed as tightly as it likes.
MAX_RATIO = 100
ALWAYS_UNPACKED = 1 << 29

# Rows of a shard have ids of 64 random bits, which nothing packs more tightly; and their values are stored
# as they are, or as 8-bit entries of a dictionary that may repeat.
LEAST_ROW_BYTES = 8
MAX_SHARD_RATIO = 4
ALWAYS_READ_OF_A_SHARD = 1 << 27

# The footer of a shard: that of ours has a kilobyte or two, and with the scales of 8-bit data up to 400,
# which are taken in one piece; the rest is read byte by byte.
MAX_FOOTER_BYTES = 1 << 20

# A request to a network: numbers as bytes, which take no more room in memory; and numbers as JSON, of which
# objects in memory take twenty times as much. What describes bytes is a few hundred characters.
MAX_REQUEST_BYTES = 1 << 26
MAX_INLINE_BYTES = 1 << 23
MAX_HEADER_BYTES = 1 << 16
MAX_REQUEST_ROWS = 1 << 12
MAX_TENSORS = 16


def most_in_a_request(elements: int) -> int:
    """How many bytes a request may have to a network that takes samples of so many numbers.

    >>> most_in_a_request(3072) >> 20, most_in_a_request(1 << 24) >> 20
    (64, 129)
    """
    return max(MAX_REQUEST_BYTES, 2 * 4 * elements + (1 << 20))


def most_unpacked(packed: int) -> int:
    """How many bytes a packed file of this size may unpack to.

    >>> most_unpacked(1_000) >> 20, most_unpacked(1 << 30) >> 30
    (512, 100)
    """
    return max(ALWAYS_UNPACKED, MAX_RATIO * packed)


def most_in_a_shard(stored: int) -> int:
    """How many bytes of values a shard of this size may hold.

    >>> most_in_a_shard(1_000) >> 20, most_in_a_shard(1 << 30) >> 30
    (128, 4)
    """
    return max(ALWAYS_READ_OF_A_SHARD, MAX_SHARD_RATIO * stored)
