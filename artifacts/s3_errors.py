"""What S3 and the way to it can answer, put into this room's codes, words and retry rules."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,  # noqa: A004  botocore's own, of another family than Python's
    CredentialRetrievalError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    NoAuthTokenError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)

from tieout.artifacts.checked import no_store
from tieout.artifacts.errors import ArtifactError, Exit


class Kind(Enum):
    """What the caller does about it."""

    TAKEN = "the conditional put found something there"
    ABSENT = "there is no such object, or, to a HEAD, no such bucket"
    AGAIN = "may pass when tried again"
    FINAL = "will not pass when tried again"


_AGAIN_CODES: Final = frozenset(
    {
        "ConditionalRequestConflict",
        "OperationAborted",
        "RequestTimeout",
        "RequestTimeoutException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
    }
)
_CREDENTIAL_CODES: Final = frozenset(
    {
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "SignatureDoesNotMatch",
        "TokenRefreshRequired",
    }
)
_REGION_CODES: Final = frozenset(
    {
        "301",
        "307",
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
        "PermanentRedirect",
        "TemporaryRedirect",
    }
)
# On the way there or back; ConnectionError and HTTPClientError share no base but BotoCoreError.
_BROKEN: Final = (HTTPClientError, ConnectionError, IncompleteReadError, FlexibleChecksumError)
_NO_CREDENTIALS: Final = (
    CredentialRetrievalError,
    NoAuthTokenError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)


def kind_of(error: ClientError | BotoCoreError) -> Kind:
    """Sort an exception of boto3 by what to do about it."""
    if isinstance(error, ClientError):
        code, status = _code(error), _status(error)
        if status == 412:
            return Kind.TAKEN
        if code in ("NoSuchKey", "404"):
            return Kind.ABSENT
        if code in _AGAIN_CODES or status in (409, 429) or status >= 500:
            return Kind.AGAIN
        return Kind.FINAL
    if isinstance(error, _BROKEN):
        return Kind.AGAIN
    return Kind.FINAL


def explained(error: ClientError | BotoCoreError, *, location: str, endpoint: str) -> ArtifactError:
    """The error to raise when there is nothing more to try. Never repeats keys or tokens.

    endpoint: the address spoken to, or "the endpoint of AWS".
    """
    if isinstance(error, ClientError):
        return _answered(error, location=location, endpoint=endpoint)
    if isinstance(error, _BROKEN):
        return ArtifactError(
            "store.unreachable",
            f"{endpoint} gave no whole answer ({type(error).__name__})",
            place=location,
            remedy="Check the network and AWS_ENDPOINT_URL, then run the same command again.",
            exit_code=Exit.ENVIRONMENT,
        )
    if isinstance(error, _NO_CREDENTIALS):
        return _credentials(f"none were found ({type(error).__name__})", location)
    if isinstance(error, NoRegionError):
        return _region("no region was named", location)
    return ArtifactError(
        "store.location",
        f"this place cannot be spoken to ({type(error).__name__})",
        place=location,
        remedy="Name the store as s3://bucket/prefix, and AWS_ENDPOINT_URL as http(s)://host.",
    )


def _answered(error: ClientError, *, location: str, endpoint: str) -> ArtifactError:
    """The server answered, and the answer is an error."""
    code, status = _code(error), _status(error)
    if code in ("NoSuchBucket", "404"):
        return no_store(
            location,
            f"there is no such bucket at {endpoint}",
            remedy="Make the bucket, with versioning on, or correct store in tieout.toml.",
        )
    if code in _CREDENTIAL_CODES:
        return _credentials(f"{endpoint} refused them ({code})", location)
    if code == "RequestTimeTooSkewed":
        return ArtifactError(
            "store.clock",
            f"the clock of this machine and that of {endpoint} differ too much",
            place=location,
            remedy="Set the clock, then run the same command again.",
            exit_code=Exit.ENVIRONMENT,
        )
    if code in _REGION_CODES:
        return _region(f"the bucket is in another region ({code})", location)
    if kind_of(error) is Kind.AGAIN:
        return ArtifactError(
            "store.unreachable",
            f"{endpoint} kept answering {status} {code}",
            place=location,
            remedy="Wait until the server is well, then run the same command again.",
            exit_code=Exit.ENVIRONMENT,
        )
    return ArtifactError(
        "store.refused",
        f"{endpoint} refused the request: {status} {code}",
        place=location,
        remedy="Check that these credentials may list, read and write this bucket and prefix.",
        exit_code=Exit.ENVIRONMENT,
    )


def _credentials(why: str, location: str) -> ArtifactError:
    return ArtifactError(
        "store.credentials",
        f"there are no credentials that work: {why}",
        place=location,
        remedy="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.",
        exit_code=Exit.ENVIRONMENT,
    )


def _region(why: str, location: str) -> ArtifactError:
    return ArtifactError(
        "store.region",
        why,
        place=location,
        remedy="Set AWS_DEFAULT_REGION to the region of the bucket.",
        exit_code=Exit.ENVIRONMENT,
    )


def _code(error: ClientError) -> str:
    """The server's own code; letters and digits only, since it is printed."""
    found = _part(error, "Error").get("Code", "")
    return "".join(letter for letter in str(found)[:60] if letter.isalnum())


def _status(error: ClientError) -> int:
    found = _part(error, "ResponseMetadata").get("HTTPStatusCode", 0)
    return found if isinstance(found, int) else 0


def _part(error: ClientError, name: str) -> Mapping[str, object]:
    found = error.response.get(name)
    return found if isinstance(found, Mapping) else {}
