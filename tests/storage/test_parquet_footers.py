"""Footers and pages of Parquet files are looked at before Arrow is: hostile ones, and what they may say."""

import io
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mole.storage.arrow_reading import UNREADABLE, Parquet, SizeError
from mole.storage.parquet_footer import FooterError, chunks
from mole.storage.parquet_pages import check_pages


def test_a_footer_that_contradicts_itself(tmp_path):
    pq.write_table(pa.table({"n": list(range(1000))}), tmp_path / "t.parquet", row_group_size=100)
    content = (tmp_path / "t.parquet").read_bytes()
    at = content.rindex(b"\xd0\x0f")  # 1000 rows, as the footer writes it
    changed = content[:at] + b"\xd2\x0f" + content[at + 2 :]
    assert Parquet(io.BytesIO(content)).rows == 1000
    with pytest.raises(SizeError, match="contradicts itself"):
        Parquet(io.BytesIO(changed))


def packings(file):
    return {chunk.packing for group in chunks(file) for chunk in group}


@pytest.mark.parametrize("packing", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
def test_the_packing_of_columns_is_what_arrow_says(packing):
    sink = io.BytesIO()
    table = pa.table({"n": list(range(100)), "image": [[[1, 2], [3]]] * 100, "text": ["a", "b"] * 50})
    pq.write_table(
        table, sink, compression={"n": "none", "text": packing, "image.list.element.list.element": packing}
    )
    named = {"UNCOMPRESSED": "none", "LZ4": "lz4 raw"}
    metadata = pq.ParquetFile(io.BytesIO(sink.getvalue())).metadata.row_group(0)
    columns = [metadata.column(index) for index in range(metadata.num_columns)]
    (found,) = chunks(sink)
    assert [one.packing for one in found] == [
        named.get(column.compression, column.compression.lower()) for column in columns
    ]
    assert [(one.start, one.length, one.values) for one in found] == [
        (
            column.dictionary_page_offset or column.data_page_offset,
            column.total_compressed_size,
            column.num_values,
        )
        for column in columns
    ]


def test_a_packing_that_does_not_exist_does_not_abort():
    """Arrow, asked for it, ends the process."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": [1]}), sink, compression="zstd")
    content = sink.getvalue()
    at = content.rindex(b"\x18\x01n\x15") + 4  # the column's name, then its packing
    assert content[at] == 6 << 1
    assert packings(io.BytesIO(content[:at] + b"\x7e" + content[at + 1 :])) == {"unknown"}


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1" + b"\xff" * 4 + b"PAR1", b"\x1c" * 200 + b"\xc8\0\0\0PAR1"]
)
def test_what_is_no_footer(content):
    with pytest.raises(FooterError):
        packings(io.BytesIO(content))


def with_footer(footer):
    return io.BytesIO(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")


@pytest.mark.parametrize("inner", [b"\x19", b"\x1a", b"\x1b"], ids=["lists", "sets", "maps"])
def test_lists_in_lists_in_lists(inner):
    with pytest.raises(FooterError):
        packings(with_footer(b"\x49" + inner * 100_000 + b"\x10"))


def test_a_field_that_stands_there_twice():
    """Of two lists of row groups, one for us and one for Arrow, none is believed."""
    no_groups = b"\x0c"  # a list of structs, and none in it
    assert packings(with_footer(b"\x49" + no_groups + b"\0")) == set()
    with pytest.raises(FooterError, match="twice"):
        packings(with_footer(b"\x49" + no_groups + b"\x09\x08" + no_groups + b"\0"))


def varint(number):
    parts = [number >> shift & 127 for shift in range(0, max(1, number.bit_length()), 7)]
    return bytes(part | 128 for part in parts[:-1]) + bytes(parts[-1:])


def footer_of(content):
    length = int.from_bytes(content[-8:-4], "little")
    return content[4 : -8 - length], content[-8 - length : -8]


def test_a_footer_that_can_be_understood_in_two_ways():
    """Where the pages begin is a number of 70 bits, of which Arrow takes 64: another page than ours."""
    options = {"compression": "none", "write_statistics": False}
    small, large = io.BytesIO(), io.BytesIO()
    pq.write_table(pa.table({"n": [7, 7]}), small, **options)
    pq.write_table(pa.table({"n": [7] * 9_000}), large, **options)
    (pages, footer), (many, _) = footer_of(small.getvalue()), footer_of(large.getvalue())
    first = pq.ParquetFile(small).metadata.row_group(0).column(0)
    places = (first.total_compressed_size, first.data_page_offset, first.dictionary_page_offset)
    before = b"".join(
        code + varint(2 * place) for code, place in zip((b"\x16", b"&", b"&"), places, strict=True)
    )
    assert footer.count(before) == 1
    length, start, wrapped = 2 * len(many), 2 * (4 + len(many)), 1 << 64 | 2 * 4
    after = b"\x16" + varint(length) + b"&" + varint(start) + b"&" + varint(wrapped)
    changed = footer.replace(before, after)
    content = b"PAR1" + many + pages + bytes(len(many)) + with_footer(changed).getvalue()[4:]
    assert pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0).dictionary_page_offset == 4
    with pytest.raises(FooterError, match="too long"):
        chunks(io.BytesIO(content))
    with pytest.raises(UNREADABLE):  # by Arrow's own reading of it
        Parquet(io.BytesIO(content)).read({"n": 1})


def test_a_number_of_a_field_that_wraps():
    with pytest.raises(FooterError, match="too long"):
        chunks(with_footer(b"\x09" + b"\x88\x80\x08" + b"\x0c" + b"\0"))  # a list as field 65,540


def test_levels_that_a_column_does_not_have_do_not_abort(tmp_path):
    """Arrow, asked about the column, ends the process; asked to read it, it raises."""
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": [[1, 2]] * 8}), sink, compression="none", use_dictionary=False)
    content = sink.getvalue()
    at, size = (
        content.rindex(b"\x19\x46\0"),
        len(content) - 8,
    )  # how often each of four levels occurs: now three
    footer = int.from_bytes(content[size : size + 4], "little") - 1
    changed = content[:at] + b"\x19\x36" + content[at + 3 : size] + footer.to_bytes(4, "little") + b"PAR1"
    (tmp_path / "t.parquet").write_bytes(changed)
    ask = "import sys, pyarrow.parquet as p; p.ParquetFile(sys.argv[1]).metadata.row_group(0).column(0)"
    assert subprocess.run([sys.executable, "-c", ask, tmp_path / "t.parquet"], check=False).returncode != 0
    with (tmp_path / "t.parquet").open("rb") as file, pytest.raises(UNREADABLE):
        Parquet(file).read({"n.list.element": 2})


def pages_of(content, column=0):
    """The pages of a column of the first row group."""
    return chunks(io.BytesIO(content))[0][column]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"compression": "none"}])
def test_the_pages_of_every_column_are_counted(version, options):
    sink = io.BytesIO()
    table = pa.table({"n": list(range(9_000)), "list": [[1, 2]] * 9_000, "text": ["a", "bc"] * 4_500})
    pq.write_table(table, sink, data_page_version=version, data_page_size=1_000, **options)
    for column, values in enumerate((9_000, 18_000, 9_000)):
        chunk = pages_of(sink.getvalue(), column)
        check_pages(sink, chunk, values)
        for changed in (chunk, chunk._replace(values=values - 1), chunk._replace(values=values + 1)):
            with pytest.raises(FooterError):
                check_pages(sink, changed, values - 1 if changed is chunk else values + 1)
        with pytest.raises(FooterError):
            check_pages(sink, chunk._replace(length=chunk.length - 1), values)


def test_texts_that_are_built_from_those_before():
    """A few bytes for each row, and each as long as the first."""
    sink = io.BytesIO()
    table = pa.table({"row_id": ["x" * 10_000] * 100})
    pq.write_table(
        table,
        sink,
        use_dictionary=False,
        column_encoding={"row_id": "DELTA_BYTE_ARRAY"},
        compression="none",
    )
    assert len(sink.getvalue()) < 20_000
    with pytest.raises(FooterError, match="unpack to anything"):
        Parquet(sink).read({"row_id": 1})


def test_a_column_whose_name_begins_like_another_is_not_read():
    sink = io.BytesIO()
    pq.write_table(pa.table({"row_id": ["a"], "row_id.x": ["b"]}), sink)
    assert Parquet(sink).read({"row_id": 1}).to_pydict() == {"row_id": ["a"]}
