"""Passwords and tokens of URLs are neither shown nor written down, and long text is no slower for it."""

import time

import pytest

from mole.url_secrets import masked, without_secrets


@pytest.mark.parametrize(
    "piece",
    [
        "a.",
        "a://",
        "://",
        "a:b",
        "?",
        "?a",
        "&sig",
        "a@",
        "://a:",
        "//:@",
        "-+.",
        "?key=",
        "1/",
        "://a:1",
        "http://",
        "#",
    ],
)
def test_a_megabyte_of_anything_is_masked_at_once(piece):
    for text in (piece * (300_000 // len(piece)), "x://u:" + piece * 50_000, piece * 50_000 + "@"):
        started = time.process_time()
        masked(text)
        without_secrets(text)
        assert time.process_time() - started < 3


@pytest.mark.parametrize(
    ("text", "shown_as"),
    [
        ("ftp://me:secret@host/x", "ftp://me:***@host/x"),
        ("ftp://me:se/cr@et@host/x", "ftp://me:***@host/x"),
        ("s3://b::ftp://me:secret@host", "s3://b:***@host"),
        ("ftp://me:12/34@host/x", "ftp://me:***@host/x"),
        ("ftp://me@clinic.org:secret@host/x", "ftp://me@clinic.org:***@host/x"),
        ("http://host:8080/a and me@b", "http://host:8080/a and me@b"),
        ("http://host:8080/a http://u:p@h", "http://host:8080/a http://***@h"),
        (
            "'ftp://me:secret@host' and 'ftp://you:word@host'",
            "'ftp://me:***@host' and 'ftp://you:***@host'",
        ),
        ("FTP://:secret@host", "FTP://:***@host"),
        ("https://h/x?size=3&X-Amz-Signature=ab&b=2", "https://h/x?size=3&X-Amz-Signature=***&b=2"),
        ("https://h/x?a?token=abc", "https://h/x?a?token=***"),
        ("https://h/x?pwd=abc&auth=def#access_token=ghi", "https://h/x?pwd=***&auth=***#access_token=***"),
        ("https://token@host/x and me@b", "https://***@host/x and me@b"),
        ("http://host:8080 is not there: ask me@b", "http://host:8080 is not there: ask me@b"),
        ('{"at": "http://host:8080", "by": "me@b"}', '{"at": "http://host:8080", "by": "me@b"}'),
        ("me@host and 3:4", "me@host and 3:4"),
    ],
)
def test_what_is_masked(text, shown_as):
    assert masked(text) == shown_as


@pytest.mark.parametrize(
    ("place", "written"),
    [
        ("/data/me:secret@home?x", "/data/me:secret@home?x"),
        ("ftp://me:secret@host/x", "ftp://me@host/x"),
        ("ftp://me:se/cr@et@host/x", "ftp://me@host/x"),
        ("ftp://me:12/34@host/x", "ftp://me@host/x"),
        ("ftp://me@clinic.org:se/cret@host/x", "ftp://me@clinic.org@host/x"),
        ("abfs://container@account/x", "abfs://container@account/x"),
        ("https://token@host/x", "https://host/x"),
        ("https://me:se/cr@et@host/me@home", "https://home"),
        ("simplecache::HTTPS://token@host/me@home", "simplecache::HTTPS://host/me@home"),
        ("https://host/x?size=3&sig=ab", "https://host/x"),
        ("http://host:8080/a", "http://host:8080/a"),
        ("s3://bucket/me@home/x", "s3://bucket/me@home/x"),
        ("simplecache::ftp://:secret@host/x", "simplecache::ftp://@host/x"),
    ],
)
def test_what_is_written_down(place, written):
    assert without_secrets(place) == written
