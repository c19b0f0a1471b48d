"""URLs without their secrets: masked in a text that is shown, left out of a place that is written down."""

import re

# Each of these reads every character once: text may be long, and somebody else's.
_WORD = re.compile(r"[^\s'\"]+")
_USER = re.compile(r"://[^/:]*:")
_PARAMETER = re.compile(r"([?&#]([^=&?#\s]*)=)[^&#\s'\"]+")
_WEB_USER = re.compile(r"(https?://)[^/@\s'\"]*@", re.IGNORECASE)
_SECRET = re.compile("sig|token|secret|pass|pwd|auth|credential|key", re.IGNORECASE)


def masked(text: str) -> str:
    """The same text, without the passwords and tokens of URLs in it.

    >>> masked("ftp://me:secret@host/photos is not there")
    'ftp://me:***@host/photos is not there'
    >>> masked("https://host/photos.npz?size=3&token=abc cannot be read")
    'https://host/photos.npz?size=3&token=*** cannot be read'
    """
    without_passwords = _WORD.sub(_without_password, text) if "://" in text else text
    without_users = _WEB_USER.sub(r"\1***@", without_passwords)
    return _PARAMETER.sub(
        lambda found: f"{found[1]}***" if _SECRET.search(found[2]) else found[0], without_users
    )


def without_secrets(place: str) -> str:
    """One URL without password and query, and on the web without user, who may be a token; a path as it is.

    >>> without_secrets("ftp://me:secret@host/photos?token=abc"), without_secrets("/data/photos")
    ('ftp://me@host/photos', '/data/photos')
    >>> without_secrets("dir::memory://me:se/c?ret@host/photos"), without_secrets("s3://bucket/me@home")
    ('dir::memory://me@host/photos', 's3://bucket/me@home')
    """
    if "://" not in place:
        return place
    if (span := _password(place)) is not None:
        place = place[: span[0] - 1] + place[span[1] :]
    return _WEB_USER.sub(r"\1", place.partition("?")[0])


def _password(url: str) -> tuple[int, int] | None:
    """Where the first password stands: up to the last '@', because one may have a slash in it.

    A port before a path with an '@' is taken for one, too: "me:12/34@host" could be either.
    """
    last = url.rfind("@")
    user = _USER.search(url, 0, last) if last >= 0 else None
    return None if user is None else (user.end(), last)


def _without_password(word: re.Match[str]) -> str:
    """A word with its password masked."""
    text, span = word[0], _password(word[0])
    return text if span is None else f"{text[: span[0]]}***{text[span[1] :]}"
