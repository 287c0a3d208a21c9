"""Logs behind URLs (`s3://`, `gs://`, `https://`, `file://`, ...), read through fsspec as streams.

In: a URL of a file, a folder or a pattern. Out: the URLs of the files it stands for, with their sizes and a stamp that
changes when a file does, and streams of their bytes in blocks: nothing is copied to disk and no file is in memory
whole. It is a room of its own because it alone needs fsspec, which the extra `[cluster]` brings; `s3://` and the like
also need the package that fsspec names when it is missing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from glob import has_magic
from typing import IO, Any, NamedTuple

from pipeline.runtime.errors import PipelineError
from pipeline.runtime.extras import import_extra

BLOCK = 4 << 20
"""bytes fetched at a time"""


class Remote(NamedTuple):
    """A file behind a URL."""

    url: str
    size: int
    stamp: int
    """of its time, tag or whatever the store tells of its state"""
    explicit: bool
    """named itself, not found in a folder or by a pattern"""


def is_url(text: str) -> bool:
    """Whether a text names logs by URL.

    >>> is_url("s3://bucket/logs"), is_url("logs/a.log"), is_url("C://x")
    (True, False, False)
    """
    scheme, separator, _ = text.partition("://")
    return bool(separator) and len(scheme) > 1 and scheme.replace("+", "").isalnum()


def find_remote(text: str) -> list[Remote]:
    """The files that a URL stands for, in the order of their URLs."""
    with _told(text):
        store, path = _store(text)
        if has_magic(path):
            explicit, paths = False, sorted(store.glob(path))
        elif store.isdir(path):
            explicit, paths = False, sorted(store.find(path))
        else:
            explicit, paths = True, [path]
        found = []
        for one in paths:
            info = store.info(one)
            name = str(one).rpartition("/")[2]
            if info["type"] != "file" or (not explicit and (name.startswith(".") or name.endswith(".probs.parquet"))):
                continue
            found.append(Remote(store.unstrip_protocol(one), int(info["size"] or 0), _stamp(store, one), explicit))
    if not found:
        raise PipelineError(f"no files in {text}")
    return found


def stamp_of(url: str) -> tuple[int, int]:
    """The size and the stamp of a file now."""
    with _told(url):
        store, path = _store(url)
        store.invalidate_cache()
        return int(store.info(path)["size"] or 0), _stamp(store, path)


@contextmanager
def open_remote(url: str) -> Iterator[IO[bytes]]:
    """The bytes of a file."""
    with _told(url):
        store, path = _store(url)
        file = store.open(path, "rb", block_size=BLOCK)
    with file:
        yield file


def _store(text: str) -> tuple[Any, str]:
    found: tuple[Any, str] = import_extra("fsspec.core").url_to_fs(text)
    return found


def _stamp(store: Any, path: str) -> int:
    """A number of 62 bits that is another when the store says that a file changed."""
    return int(hashlib.sha256(str(store.ukey(path)).encode()).hexdigest()[:15], 16) | 1


@contextmanager
def _told(text: str) -> Iterator[None]:
    """What a store says is wrong, in a sentence."""
    try:
        yield
    except (PipelineError, MemoryError):
        raise
    except FileNotFoundError:
        raise PipelineError(f"no file or folder {text!r}") from None
    except ImportError as error:
        raise PipelineError(f"{text}: {' '.join(str(error).split())}") from None
    except Exception as error:  # every store has errors of its own
        said = " ".join(str(error).split()) or type(error).__name__
        raise PipelineError(f"cannot read {text}: {said[:300]}") from None
