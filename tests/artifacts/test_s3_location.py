"""Which texts name a place in S3, and that no other exception leaks from reading one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieout.artifacts.errors import ArtifactError
from tieout.artifacts.s3 import S3Location, parse_location


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("s3://bucket", S3Location("bucket", "")),
        ("s3://bucket/", S3Location("bucket", "")),
        ("s3://bucket/close", S3Location("bucket", "close")),
        ("s3://my.bucket-1/close/2026-06/", S3Location("my.bucket-1", "close/2026-06")),
    ],
)
def test_locations_are_read(text: str, location: S3Location) -> None:
    assert parse_location(text) == location
    assert parse_location(str(location)) == location


@pytest.mark.parametrize(
    "text",
    [
        "",
        "bucket/close",
        "s3:/bucket",
        "S3://bucket",
        "s3://",
        "s3:///close",
        "s3://b",
        "s3://Bucket",
        "s3://user:secret@bucket/x",
        "s3://bucket//x",
        "s3://bucket/a//b",
        "s3://bucket/x?y",
        "s3://bucket/a b",
        "s3://bucket/x\n",
        "s3://bucket/é",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        parse_location(text)
    assert caught.value.code == "store.location"


@given(st.text(max_size=30).map("s3://".__add__))
def test_no_other_exception_leaks(text: str) -> None:
    try:
        location = parse_location(text)
    except ArtifactError as error:
        assert error.code == "store.location"
    else:
        assert parse_location(str(location)) == location
