"""A look at a whole source: everything that is wrong with it at once, and never a false alarm."""

import io
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from mole.errors import ProblemsError, ShapeError, SourceError
from mole.sources.image_headers import image_outline
from mole.sources.images import ImageError, decode_image
from mole.sources.inspection import inspect
from mole.sources.opening import open_source
from mole.sources.preparation import MODES, RESIZES, Preparation
from mole.sources.source import BadSampleError, Outline, Sample

SIDES = st.integers(1, 5)


def encoded(pixels, form, **options):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, form, **options)
    return file.getvalue()


def pixels_of(rng, *shape, dtype=np.uint8):
    return rng.integers(0, np.iinfo(dtype).max, shape, dtype=dtype)


def sampled(sample):
    return Outline(sample.values.shape, sample.axes, sample.values.dtype.name)


@given(
    axes=st.sampled_from(["hw", "hwc", "chw", "either", "any"]),
    sides=st.tuples(SIDES, SIDES, SIDES),
    wanted=st.tuples(st.sampled_from([1, 2, 3]), SIDES, SIDES),
    dtype=st.sampled_from(["uint8", "uint16", "int32", "float32"]),
    options=st.tuples(st.sampled_from([None, *MODES]), st.sampled_from([None, *RESIZES])),
)
@settings(max_examples=300, deadline=None)
def test_an_outline_is_judged_as_the_sample_is(axes, sides, wanted, dtype, options):
    """The oracle is what reading does: the same verdict, in the same words."""
    shape = sides[:2] if axes == "hw" else sides
    preparation = Preparation(wanted, None, *options)
    verdicts = []
    for judge in (
        lambda: preparation.shape(Sample(np.zeros(shape, dtype), axes)),
        lambda: preparation.check(Outline(shape, axes, dtype)),
    ):
        try:
            judge()
            verdicts.append(None)
        except ShapeError as error:
            verdicts.append(str(error))
    assert verdicts[0] == verdicts[1]


IMAGES = {
    "PNG": [((8, 6, 3), {}), ((8, 6), {}), ((8, 6, 4), {}), ((8, 6, 2), {})],
    "JPEG": [((8, 6, 3), {}), ((8, 6), {}), ((90, 80, 3), {"progressive": True})],
    "TIFF": [((8, 6, 3), {}), ((8, 6), {"compression": "tiff_lzw"}), ((40, 30, 3), {})],
    "BMP": [((8, 6, 3), {}), ((8, 7), {})],
    "WEBP": [((8, 6, 3), {}), ((8, 6, 4), {"lossless": True})],
}
FILES = [(form, *options) for form, each in IMAGES.items() for options in each]


@pytest.mark.parametrize(("form", "shape", "options"), FILES)
def test_a_header_tells_what_decoding_gives(rng, form, shape, options):
    content = encoded(pixels_of(rng, *shape), form, **options)
    assert image_outline(io.BytesIO(content)) == sampled(decode_image(content))
    assert image_outline(io.BytesIO(content + bytes(50))) == sampled(decode_image(content + bytes(50)))


@pytest.mark.parametrize(("form", "shape", "options"), FILES)
def test_a_file_that_is_cut_off_is_never_taken_for_whole(rng, form, shape, options):
    content = encoded(pixels_of(rng, *shape), form, **options)
    for length in np.linspace(0, len(content) - 1, 40).astype(int).tolist():
        cut = content[:length]
        try:
            decode_image(cut)
        except ImageError:
            try:
                assert image_outline(io.BytesIO(cut)) is None
            except ImageError:
                continue


def test_images_are_turned_as_their_headers_say(rng):
    turned = Image.Exif()
    turned[0x0112] = 6
    for form in ("JPEG", "PNG", "TIFF", "WEBP"):
        content = encoded(pixels_of(rng, 8, 6, 3), form, exif=turned)
        expected = sampled(decode_image(content))
        assert expected.shape == (6, 8, 3)
        outline = image_outline(io.BytesIO(content))
        assert outline == expected or (outline is None and form == "TIFF")


def test_sixteen_bits_and_palettes(rng):
    deep = encoded(pixels_of(rng, 8, 6, dtype=np.uint16), "PNG")
    assert image_outline(io.BytesIO(deep)) == Outline((8, 6), "hw", "uint16")
    file = io.BytesIO()
    Image.fromarray(pixels_of(rng, 8, 6, 3)).quantize(8).save(file, "PNG", transparency=0)
    assert (
        image_outline(file) == sampled(decode_image(file.getvalue())) == Outline((8, 6, 4), "hwc", "uint8")
    )


@pytest.fixture
def photos(tmp_path, rng):
    (tmp_path / "photos").mkdir()
    for index in range(6):
        content = encoded(pixels_of(rng, 8, 8, 3), "PNG")
        (tmp_path / "photos" / f"{index}.png").write_bytes(content)
    return tmp_path / "photos"


def test_nothing_is_wrong_with_good_images(photos):
    found = inspect(open_source(str(photos)), Preparation((3, 8, 8)))
    assert (found.samples, found.bad, found.error()) == (6, 0, None)
    found.refuse(skip_bad=False)


def test_no_pixel_is_decoded_for_it(photos, monkeypatch):
    monkeypatch.setattr(Image.Image, "convert", lambda *_: pytest.fail("pixels were decoded"))
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda *_: pytest.fail("pixels were decoded"))
    assert inspect(open_source(str(photos)), Preparation((3, 8, 8))).bad == 0


def test_one_bad_image_is_named_as_it_always_was(photos):
    (photos / "3.png").write_bytes(b"")
    error = inspect(open_source(str(photos)), Preparation((3, 8, 8))).error()
    assert isinstance(error, BadSampleError)
    assert error.name == str(photos / "3.png")
    assert re.search(
        r"3\.png cannot be used: it is empty: .* leave it out: give skip_bad=True$", str(error)
    )


def test_images_with_the_same_fault_are_counted(photos, rng):
    for index in range(4):
        content = encoded(pixels_of(rng, 9 + index, 8, 3), "PNG")
        (photos / f"{index}.png").write_bytes(content)
    error = inspect(open_source(str(photos)), Preparation((3, 8, 8))).error()
    assert str(error) == (
        f"4 images cannot be used ({photos}/0.png, {photos}/1.png and 2 more): the first is 3x9x8 and the "
        'layer takes 3x8x8: give resize="crop" or resize="stretch"'
    )


def test_images_that_are_left_out_do_not_stop_the_work_unless_none_is_left(photos):
    preparation = Preparation((3, 8, 8))
    (photos / "0.png").write_bytes(b"")
    inspect(open_source(str(photos)), preparation).refuse(skip_bad=True)
    for index in range(6):
        (photos / f"{index}.png").write_bytes(b"")
    with pytest.raises(SourceError, match="not one of 6 samples can be used, so nothing is left"):
        inspect(open_source(str(photos)), preparation).refuse(skip_bad=True)


def test_damage_inside_does_not_show_in_a_header(photos):
    """Said in the documents: what only decoding finds is found when it is decoded."""
    content = bytearray((photos / "2.png").read_bytes())
    content[60:70] = bytes(10)
    (photos / "2.png").write_bytes(content)
    source, preparation = open_source(str(photos)), Preparation((3, 8, 8))
    assert inspect(source, preparation).bad == 0
    with pytest.raises(BadSampleError):
        preparation.read(source.splits["train"], 2)


def test_rows_of_a_table_are_looked_at_too(tmp_path, rng):
    good = encoded(pixels_of(rng, 8, 8, 3), "PNG")
    cells = [good, good[:-40], b"", None, encoded(pixels_of(rng, 8, 8), "JPEG")]
    pq.write_table(pa.table({"image": pa.array(cells, pa.binary())}), tmp_path / "data.parquet")
    error = inspect(open_source(str(tmp_path / "data.parquet")), Preparation((3, 8, 8))).error()
    assert isinstance(error, ProblemsError)
    assert [str(problem).split(" of ")[0] for problem in error.problems] == [
        "row 1",
        "row 2",
        "row 3",
        "row 4",
    ]


def test_lists_and_arrays_are_judged_without_reading_them(tmp_path, rng):
    grid = pixels_of(rng, 2, 9, 9, 3)
    pq.write_table(pa.table({"image": grid.tolist()}), tmp_path / "data.parquet")
    np.save(tmp_path / "data.npy", grid)
    for name in ("data.parquet", "data.npy"):
        source = open_source(str(tmp_path / name))
        outline = source.splits["train"].outline(0)
        assert outline == sampled(source.splits["train"].read(0))
        assert "the first is 3x9x9 and" in str(inspect(source, Preparation((3, 8, 8))).error())


def test_where_no_image_fits_leaving_them_out_is_no_advice(tmp_path):
    for index in range(3):
        Image.new("L", (4, 4)).save(tmp_path / f"{index}.png")
    looked = inspect(open_source(tmp_path, labels=False), Preparation((32,), None))
    for skip_bad in (False, True):
        with pytest.raises(
            SourceError, match=r"not one of 3 samples can be used.*or deliver features"
        ) as told:
            looked.refuse(skip_bad=skip_bad)
        assert not told.value.advice
