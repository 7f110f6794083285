"""From the text in `tieout.toml` to the store it names: `s3://bucket/prefix`, or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.local import LocalStore
from tieout.artifacts.s3 import S3Store, parse_location
from tieout.artifacts.store import Store

S3_SCHEME: Final = "s3://"


def open_store(location: str, *, base: Path) -> Store:
    """The store that is there. base: the folder that a relative path starts from.

    Raises ArtifactError: store.missing (exit 10) for a folder without a store, store.location
    for a text that names no place. A bucket is asked nothing before it is used.
    """
    if location.startswith(S3_SCHEME):
        return _bucket(location)
    return LocalStore(_folder(location, base))


def create_store(location: str, *, base: Path) -> Store:
    """The store, made if it is a folder and not there; a bucket must exist already.

    Raises ArtifactError: disk.*, file.*, and for a bucket store.*.
    """
    if location.startswith(S3_SCHEME):
        store = _bucket(location)
        store.require()
        return store
    return LocalStore.create(_folder(location, base))


def _bucket(location: str) -> S3Store:
    place = parse_location(location)
    return S3Store(place.bucket, place.prefix)


def _folder(location: str, base: Path) -> Path:
    if not location or "://" in location or "\0" in location:
        raise ArtifactError(
            "store.location",
            f"{location[:200]!r} names no store",
            remedy="Write a folder, or s3://bucket/prefix.",
        )
    return base / location
