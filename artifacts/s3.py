"""A store of artifacts in a bucket of S3, or of a server that speaks its protocol.

Source: DESIGN §2 and §4. Every put is conditional (If-None-Match) and carries its SHA-256;
every read is checked by size and BLAKE3, because boto3 gives a truncated body as if it were
whole when the server sends no checksum. boto3 is imported when the first call is made.
Deliberately not here: Object Lock and the class of retention, which need a policy.
"""

from __future__ import annotations

import base64
import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeAlias, TypeVar

from tieout.artifacts.address import Address
from tieout.artifacts.checked import corrupt, missing, stream, unchanged
from tieout.artifacts.errors import ArtifactError, Exit
from tieout.artifacts.pieces import Payload, joined
from tieout.artifacts.store import ObjectStat, RetentionClass, Stored

WAITS_S: Final = (0.1, 0.4, 1.6, 6.4)  # between five tries, so that a restart is outlived
CONNECT_TIMEOUT_S: Final = 5
READ_TIMEOUT_S: Final = 60
PUT_BYTES_MAX: Final = 5 * 1024**3  # S3 takes no more in one request
READ_TRIES_MAX: Final = 2  # of bytes that differ from their address: once may be the way here

_LOCATION: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", re.DOTALL)
_PREFIX: Final = re.compile(r"[A-Za-z0-9!_.*'()=-]+(?:/[A-Za-z0-9!_.*'()=-]+)*")

# boto3 has no types; what is used of it stands in this file alone.
_Client: TypeAlias = Any
_Answer: TypeAlias = Mapping[str, Any]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class S3Location:
    """A bucket, and a prefix without a slash at either end, or ""."""

    bucket: str
    prefix: str

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}" if self.prefix else f"s3://{self.bucket}"


def parse_location(text: str) -> S3Location:
    """Read `s3://bucket` or `s3://bucket/prefix`; else ArtifactError store.location."""
    found = _LOCATION.fullmatch(text)
    prefix = (found[2] or "").removesuffix("/") if found else ""
    if not found or (prefix and not _PREFIX.fullmatch(prefix)):
        raise ArtifactError(
            "store.location",
            f"{text[:200]!r} names no bucket and prefix",
            remedy="Write s3://bucket/prefix; a prefix has letters, digits and !_.*'()=-/",
        )
    return S3Location(found[1], prefix)


class S3Store:
    """The store below a prefix of a bucket that exists; see store.py for what it promises.

    endpoint_url and region: None takes what boto3's own environment says (AWS_ENDPOINT_URL,
    AWS_DEFAULT_REGION, profiles); credentials come from there always. sleep: called with
    seconds between two tries. Safe for threads. Nothing is asked of the server before the
    first call; store.missing (exit 10) then says that there is no such bucket.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str,
        *,
        endpoint_url: str | None = None,
        region: str | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._place = parse_location(f"s3://{bucket}/{prefix}")
        self._endpoint_url = endpoint_url
        self._region = region
        self._sleep = sleep
        self._lock = threading.Lock()
        self._made: _Client = None

    @property
    def location(self) -> str:
        return str(self._place)

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made.close()

    def require(self) -> None:
        """Raises ArtifactError when the bucket cannot be spoken to: store.*."""
        self._ask(lambda client: client.head_bucket(Bucket=self._place.bucket))

    def put(self, payload: Payload, *, retention: RetentionClass = RetentionClass.RETAIN) -> Stored:
        """Raises ArtifactError: object.corrupt, object.changed, object.too_large, store.*.

        `version` is the server's VersionId, of the copy made or found.
        """
        if len(payload) > PUT_BYTES_MAX:
            raise ArtifactError(
                "object.too_large",
                f"{len(payload)} bytes are more than S3 takes in one object ({PUT_BYTES_MAX})",
                place=self.location,
                remedy="Use a store in a folder for objects of this size.",
            )
        whole = joined(payload)
        address = Address.of(whole)
        unchanged(payload, address, location=self.location)
        digest = hashlib.sha256(whole)
        answer = self._ask(
            lambda client: client.put_object(
                Bucket=self._place.bucket,
                Key=self._key(address),
                Body=whole,
                IfNoneMatch="*",
                ChecksumAlgorithm="SHA256",
                ChecksumSHA256=base64.b64encode(digest.digest()).decode("ascii"),
            ),
            taken=lambda: None,
        )
        created = answer is not None
        if answer is None:
            # Ours from a try whose answer was lost, or another's: its content decides.
            _, answer = self._read(address)
        version = answer.get("VersionId", "")
        return Stored(
            address=address,
            sha256=digest.hexdigest(),
            size=len(payload),
            retention=retention,
            version="" if version == "null" else str(version),
            created=created,
        )

    def get(self, address: Address) -> bytes:
        return self._read(address)[0]

    def open(self, address: Address) -> BinaryIO:
        """The object is held in memory, so that what was checked is what is read."""
        return stream(self.get(address))

    def scan(self, address: Address) -> AbstractContextManager[BinaryIO]:
        """As `open`: checked before the first byte is given."""
        return self.open(address)

    def stat(self, address: Address) -> ObjectStat:
        answer = self._ask(
            lambda client: client.head_object(Bucket=self._place.bucket, Key=self._key(address)),
            absent=lambda: self._absent(address),
        )
        return ObjectStat(address=address, size=int(answer["ContentLength"]))

    def addresses(self) -> Iterator[Address]:
        latest: Address | None = None
        for key in self._keys("objects/blake3/"):
            address = _address_of(key)
            if address is None:
                continue
            if latest is not None and address <= latest:
                raise ArtifactError(
                    "store.unsorted",
                    "the server lists objects out of order, so a listing cannot be relied on",
                    place=self.location,
                    remedy="Use a server that lists keys in ascending order, as S3 does.",
                    exit_code=Exit.ENVIRONMENT,
                )
            latest = address
            yield address

    def strangers(self) -> list[str]:
        """Keys below the prefix that are no objects, sorted, without the prefix."""
        return sorted(key for key in self._keys("") if _address_of(key) is None)

    def _key(self, address: Address) -> str:
        return self._root() + address.key

    def _root(self) -> str:
        return f"{self._place.prefix}/" if self._place.prefix else ""

    def _keys(self, below: str) -> Iterator[str]:
        """Every key below, page by page, without the prefix."""
        root = self._root()
        token: dict[str, str] = {}
        while True:
            page = self._page(root + below, token)
            for entry in page.get("Contents", ()):
                yield str(entry["Key"]).removeprefix(root)
            if not page.get("IsTruncated") or not page.get("NextContinuationToken"):
                return
            token = {"ContinuationToken": str(page["NextContinuationToken"])}

    def _page(self, prefix: str, token: Mapping[str, str]) -> _Answer:
        def request(client: _Client) -> _Answer:
            answer: _Answer = client.list_objects_v2(
                Bucket=self._place.bucket, Prefix=prefix, **token
            )
            return answer

        return self._ask(request)

    def _read(self, address: Address) -> tuple[bytes, _Answer]:
        """The checked bytes and what the server said of them."""
        found = ""
        for _ in range(READ_TRIES_MAX):
            payload, answer = self._ask(
                lambda client: self._read_once(client, address),
                absent=lambda: self._absent(address),
            )
            actual = Address.of(payload)
            if actual == address:
                return payload, answer
            found = f"it has {len(payload)} bytes whose address is {actual}"
        raise corrupt(address, found, location=self.location)

    def _read_once(self, client: _Client, address: Address) -> tuple[bytes, _Answer]:
        answer: _Answer = client.get_object(Bucket=self._place.bucket, Key=self._key(address))
        # Not as a context manager: that would hand out the raw stream, which checks nothing.
        body = answer["Body"]
        try:
            return body.read(), answer
        finally:
            body.close()

    def _absent(self, address: Address) -> Any:
        """A HEAD says 404 for the object and for the bucket alike; ask which it was."""
        self.require()
        raise missing(address, location=self.location)

    def _ask(
        self,
        request: Callable[[_Client], _T],
        *,
        taken: Callable[[], _T] | None = None,
        absent: Callable[[], _T] | None = None,
    ) -> _T:
        """Make one request, again after a wait while that may help, and explain what remains.

        taken and absent: what to give when the answer is 412 or 404.
        """
        client = self._client()
        from botocore.exceptions import BotoCoreError, ClientError

        from tieout.artifacts.s3_errors import Kind, explained, kind_of

        waits = iter(WAITS_S)
        while True:
            try:
                return request(client)
            except (BotoCoreError, ClientError) as error:
                kind = kind_of(error)
                if kind is Kind.TAKEN and taken is not None:
                    return taken()
                if kind is Kind.ABSENT and absent is not None:
                    return absent()
                wait_s = next(waits, None) if kind is Kind.AGAIN else None
                if wait_s is None:
                    raise explained(
                        error, location=self.location, endpoint=self._endpoint(client)
                    ) from error
            self._sleep(wait_s)

    def _client(self) -> _Client:
        with self._lock:
            if self._made is None:
                self._made = self._make_client()
            return self._made

    def _make_client(self) -> _Client:
        try:
            import boto3
            from botocore.config import Config
            from botocore.exceptions import BotoCoreError
        except ImportError as error:
            raise ArtifactError(
                "store.no_boto3",
                "a store in S3 needs boto3, which is not installed",
                place=self.location,
                remedy="Install it: pip install 'tieout[s3]'.",
                exit_code=Exit.ENVIRONMENT,
            ) from error
        from tieout.artifacts.s3_errors import explained

        config = Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"total_max_attempts": 1},  # the tries are counted here, not in two places
            request_checksum_calculation="when_required",
            # BLAKE3 is checked on every read, and says more than the server's own checksum.
            response_checksum_validation="when_required",
        )
        try:
            return boto3.session.Session().client(
                "s3", endpoint_url=self._endpoint_url, region_name=self._region, config=config
            )
        except BotoCoreError as error:
            raise explained(error, location=self.location, endpoint="the endpoint") from error
        except ValueError as error:
            raise ArtifactError(
                "store.location",
                "the endpoint is no address of a server",
                place=self.location,
                remedy="Write AWS_ENDPOINT_URL as https://host or http://host:port.",
            ) from error

    @staticmethod
    def _endpoint(client: _Client) -> str:
        """Host and port, without a user name or password that the address may carry."""
        address = str(client.meta.endpoint_url)
        scheme, mark, rest = address.partition("://")
        return scheme + mark + rest.rpartition("@")[2]


def _address_of(key: str) -> Address | None:
    try:
        return Address.from_key(key)
    except ArtifactError:
        return None
