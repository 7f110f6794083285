"""What only a store in S3 has: a network that fails, versions, credentials, pages, addresses."""

from __future__ import annotations

import base64
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from support.s3server import S3Server, Trouble, bad_way, s3_server

from tieout.artifacts import s3
from tieout.artifacts.address import Address
from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.opening import create_store, open_store
from tieout.artifacts.s3 import WAITS_S, S3Store
from tieout.artifacts.s3_errors import Kind, explained, kind_of

PAYLOAD = b"bank;1010;41200.17\n" * 500
ADDRESS = Address.of(PAYLOAD)


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


@pytest.fixture(scope="module")
def way(server: S3Server) -> Iterator[tuple[S3Server, Trouble]]:
    with bad_way(server) as found:
        yield found


@pytest.fixture(scope="module")
def client(server: S3Server) -> Iterator[Any]:
    with server.client() as made:
        yield made


@pytest.fixture(autouse=True)
def environment(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def prefix(request: pytest.FixtureRequest) -> str:
    return "".join(c if c.isalnum() else "-" for c in request.node.name)


# Making a client of boto3 costs more than most tests here; stores at one server share one.
@pytest.fixture(scope="module")
def connection(server: S3Server) -> Iterator[Any]:
    yield from _connection(server)


@pytest.fixture(scope="module")
def gated_connection(way: tuple[S3Server, Trouble]) -> Iterator[Any]:
    yield from _connection(way[0])


def _connection(server: S3Server) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment().items():
            patch.setenv(name, value)
        maker = S3Store(server.bucket, "")
        made = maker._client()
    yield made
    maker.close()


class Gated:
    """A store behind the gate: what was waited and asked can be looked at."""

    def __init__(self, server: S3Server, trouble: Trouble, prefix: str) -> None:
        self.waited: list[float] = []
        self.trouble = trouble
        self.endpoint = server.endpoint
        trouble.planned.clear()
        trouble.asked.clear()
        self.store = S3Store(
            server.bucket, prefix, endpoint_url=server.endpoint, sleep=self.waited.append
        )


@pytest.fixture
def gated(way: tuple[S3Server, Trouble], prefix: str, gated_connection: Any) -> Gated:
    made = Gated(*way, prefix)
    made.store._made = gated_connection
    return made


@pytest.fixture
def store(server: S3Server, prefix: str, connection: Any) -> S3Store:
    made = S3Store(server.bucket, prefix)
    made._made = connection
    return made


@pytest.fixture
def fresh_store(server: S3Server, prefix: str) -> Iterator[S3Store]:
    """A store with a client of its own, which a test may change."""
    made = S3Store(server.bucket, prefix)
    yield made
    made.close()


def error_of(call: Any) -> ArtifactError:
    with pytest.raises(ArtifactError) as caught:
        call()
    assert caught.value.remedy
    assert "not-a-secret" not in str(caught.value)
    return caught.value


# --- what is kept ------------------------------------------------------------------------


def test_objects_lie_under_the_prefix_with_their_sha256_and_version(
    store: S3Store, client: Any, server: S3Server, prefix: str
) -> None:
    stored = store.put(PAYLOAD)
    assert stored.version
    assert store.put(PAYLOAD).version == stored.version
    head = client.head_object(
        Bucket=server.bucket, Key=f"{prefix}/{ADDRESS.key}", ChecksumMode="ENABLED"
    )
    assert head["VersionId"] == stored.version
    assert bytes.fromhex(stored.sha256) == base64.b64decode(head["ChecksumSHA256"])
    versions = client.list_object_versions(Bucket=server.bucket, Prefix=f"{prefix}/")
    assert len(versions["Versions"]) == 1


def test_without_a_prefix_keys_start_with_objects(server: S3Server, client: Any) -> None:
    client.create_bucket(Bucket="bare-bucket")  # not versioned: no version to tell
    bare = S3Store("bare-bucket", "")
    stored = bare.put(PAYLOAD)
    assert stored.version == ""
    assert bare.location == "s3://bare-bucket"
    assert client.get_object(Bucket="bare-bucket", Key=ADDRESS.key)["Body"].read() == PAYLOAD
    assert list(bare.addresses()) == [ADDRESS]
    bare.close()


def test_a_version_called_null_is_no_version(fresh_store: S3Store) -> None:
    # What S3 says where versioning is suspended.
    fresh_store._client().meta.events.register(
        "after-call.s3.PutObject", lambda parsed, **_: parsed.update(VersionId="null")
    )
    assert fresh_store.put(PAYLOAD).version == ""


def test_after_a_delete_marker_the_object_can_be_put_again(
    store: S3Store, client: Any, server: S3Server, prefix: str
) -> None:
    first = store.put(PAYLOAD)
    client.delete_object(Bucket=server.bucket, Key=f"{prefix}/{ADDRESS.key}")
    assert error_of(lambda: store.get(ADDRESS)).code == "object.missing"
    again = store.put(PAYLOAD)
    assert again.created
    assert again.version != first.version


def test_listing_goes_over_pages_and_passes_over_strangers(
    fresh_store: S3Store, client: Any, server: S3Server, prefix: str
) -> None:
    made = sorted(fresh_store.put(str(number).encode()).address for number in range(23))
    strange = ["README", "objects/blake3/ab/short", "objects/sha256/ab/" + "0" * 62]
    for key in strange:
        client.put_object(Bucket=server.bucket, Key=f"{prefix}/{key}", Body=b"?")
    # A server may give fewer keys than asked for; this one is made to.
    inner = fresh_store._client()
    inner.meta.events.register(
        "provide-client-params.s3.ListObjectsV2",
        lambda params, **_: {**params, "MaxKeys": 5},
    )
    assert list(fresh_store.addresses()) == made
    assert fresh_store.strangers() == sorted(strange)


def test_a_listing_out_of_order_is_an_error(fresh_store: S3Store) -> None:
    fresh_store.put(b"a")
    fresh_store.put(b"b")
    fresh_store._client().meta.events.register(
        "after-call.s3.ListObjectsV2", lambda parsed, **_: parsed["Contents"].reverse()
    )
    assert error_of(lambda: list(fresh_store.addresses())).code == "store.unsorted"


# --- a network that fails ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["503", "500", "429", "409", "reset", "lost"])
def test_trouble_that_passes_is_outlived(gated: Gated, kind: str) -> None:
    gated.trouble.plan("PUT", kind, kind)
    stored = gated.store.put(PAYLOAD)
    assert gated.waited == list(WAITS_S[:2])
    # "lost": the server had stored it before the answer was cut, so it was found, not made.
    assert stored.created == (kind != "lost")
    assert stored.version
    assert gated.trouble.asked[:3] == ["PUT"] * 3
    assert gated.store.get(ADDRESS) == PAYLOAD


@pytest.mark.parametrize("kind", ["503", "reset", "cut"])
def test_reads_are_tried_again(gated: Gated, kind: str) -> None:
    gated.store.put(PAYLOAD)
    gated.trouble.plan("GET", kind, kind, kind)
    assert gated.store.get(ADDRESS) == PAYLOAD
    assert gated.waited == list(WAITS_S[:3])


@pytest.mark.parametrize("kind", ["503", "reset", "lost", "409"])
def test_trouble_that_stays_ends_with_the_endpoint_named(gated: Gated, kind: str) -> None:
    gated.trouble.plan("PUT", *[kind] * 9)
    error = error_of(lambda: gated.store.put(PAYLOAD))
    assert error.code == "store.unreachable"
    assert error.exit_code is Exit.ENVIRONMENT
    assert gated.endpoint in error.message
    assert gated.waited == list(WAITS_S)
    assert gated.trouble.asked == ["PUT"] * (len(WAITS_S) + 1)


@pytest.mark.parametrize("kind", ["truncated", "flipped"])
def test_a_body_that_boto3_takes_for_whole_is_checked(gated: Gated, kind: str) -> None:
    gated.store.put(PAYLOAD)
    gated.trouble.plan("GET", kind)
    assert gated.store.get(ADDRESS) == PAYLOAD  # damaged on the way: the second try is good
    gated.trouble.plan("GET", kind, kind)
    error = error_of(lambda: gated.store.get(ADDRESS))
    assert error.code == "object.corrupt"
    assert error.place == str(ADDRESS)
    gated.trouble.plan("GET", kind, kind)
    assert error_of(lambda: gated.store.open(ADDRESS)).code == "object.corrupt"


def test_a_body_that_is_always_cut_is_never_data(gated: Gated) -> None:
    gated.store.put(PAYLOAD)
    gated.trouble.plan("GET", *["cut"] * 9)
    assert error_of(lambda: gated.store.get(ADDRESS)).code == "store.unreachable"


def test_nobody_listens(server: S3Server) -> None:
    waited: list[float] = []
    store = S3Store("evidence", "x", endpoint_url="http://127.0.0.1:1", sleep=waited.append)
    for call in (
        lambda: store.put(b"x"),
        lambda: store.get(ADDRESS),
        lambda: store.stat(ADDRESS),
        lambda: list(store.addresses()),
        store.require,
    ):
        error = error_of(call)
        assert error.code == "store.unreachable"
        assert "http://127.0.0.1:1" in error.message
        assert error.exit_code is Exit.ENVIRONMENT
    store.close()


# --- a place or a right that is wrong ----------------------------------------------------


def test_a_bucket_that_is_not_there() -> None:
    store = S3Store("no-such-bucket", "x")
    for call in (
        lambda: store.put(b"x"),
        lambda: store.get(ADDRESS),
        lambda: store.open(ADDRESS),
        lambda: store.stat(ADDRESS),
        lambda: list(store.addresses()),
        store.strangers,
        store.require,
    ):
        error = error_of(call)
        assert error.code == "store.missing"
        assert error.exit_code is Exit.NO_WORKSPACE
        assert error.place == "s3://no-such-bucket/x"
    store.close()


def test_no_credentials(fresh_store: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    error = error_of(lambda: fresh_store.put(b"x"))
    assert error.code == "store.credentials"
    assert error.exit_code is Exit.ENVIRONMENT
    assert "AWS_ACCESS_KEY_ID" in error.remedy


def test_a_profile_that_is_not_there(fresh_store: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert error_of(lambda: fresh_store.put(b"x")).code == "store.credentials"


@pytest.mark.parametrize("endpoint", ["nonsense", "http://", "ftp://127.0.0.1"])
def test_an_endpoint_that_is_none(endpoint: str) -> None:
    store = S3Store("evidence", "x", endpoint_url=endpoint)
    assert error_of(lambda: store.put(b"x")).code == "store.location"


def test_a_password_in_the_endpoint_is_not_repeated() -> None:
    store = S3Store(
        "evidence", "x", endpoint_url="http://me:not-a-secret@127.0.0.1:1", sleep=lambda _: None
    )
    error = error_of(lambda: store.put(b"x"))
    assert "127.0.0.1:1" in error.message
    store.close()


ANSWERS = [
    (403, "InvalidAccessKeyId", "store.credentials", Exit.ENVIRONMENT),
    (403, "SignatureDoesNotMatch", "store.credentials", Exit.ENVIRONMENT),
    (400, "ExpiredToken", "store.credentials", Exit.ENVIRONMENT),
    (403, "AccessDenied", "store.refused", Exit.ENVIRONMENT),
    (403, "RequestTimeTooSkewed", "store.clock", Exit.ENVIRONMENT),
    (301, "PermanentRedirect", "store.region", Exit.ENVIRONMENT),
    (400, "AuthorizationHeaderMalformed", "store.region", Exit.ENVIRONMENT),
    (404, "NoSuchBucket", "store.missing", Exit.NO_WORKSPACE),
    (503, "SlowDown", "store.unreachable", Exit.ENVIRONMENT),
    (400, "RequestTimeout", "store.unreachable", Exit.ENVIRONMENT),
    (409, "ConditionalRequestConflict", "store.unreachable", Exit.ENVIRONMENT),
    (400, "BadDigest", "store.refused", Exit.ENVIRONMENT),
]


@pytest.mark.parametrize(("status", "code", "ours", "leaves"), ANSWERS)
def test_each_answer_has_its_code(status: int, code: str, ours: str, leaves: Exit) -> None:
    answer = ClientError(
        {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject"
    )
    error = explained(answer, location="s3://b/p", endpoint="http://host")
    assert (error.code, error.exit_code, error.place) == (ours, leaves, "s3://b/p")
    assert (kind_of(answer) is Kind.AGAIN) == (ours == "store.unreachable")


@pytest.mark.parametrize("response", [{}, {"Error": {}}, {"Error": {"Code": "\x1b[2J<x>"}}])
def test_an_answer_that_says_nothing_is_still_explained(response: dict[str, Any]) -> None:
    answer = ClientError(response, "GetObject")
    error = explained(answer, location="s3://b", endpoint="http://host")
    assert error.code == "store.refused"
    assert "\x1b" not in str(error)


def test_an_object_over_the_limit_of_s3(store: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "PUT_BYTES_MAX", 10)
    assert error_of(lambda: store.put(b"x" * 11)).code == "object.too_large"
    assert store.put(b"x" * 10).created


# --- from a text, and what is loaded -----------------------------------------------------


def test_one_way_to_open_any_store(tmp_path: Any, prefix: str) -> None:
    place = f"s3://evidence/{prefix}"
    made = create_store(place, base=tmp_path)
    address = made.put(PAYLOAD).address
    opened = open_store(place, base=tmp_path)
    assert opened.get(address) == PAYLOAD
    error = error_of(lambda: create_store("s3://no-such-bucket/x", base=tmp_path))
    assert error.code == "store.missing"
    for store in (made, opened):
        assert isinstance(store, S3Store)
        store.close()


def test_boto3_is_not_loaded_before_a_bucket_is_used() -> None:
    code = (
        "import sys; from pathlib import Path; from tieout.artifacts.opening import open_store;"
        "open_store('s3://evidence/x', base=Path('.'));"
        "print([name for name in ('boto3', 'botocore') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
