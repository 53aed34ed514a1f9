"""Every problem, with its code, its HTTP status, its title, and a sentence that helps.

Core and use cases use the codes. Only the surfaces turn a code into a status.
"""

from dataclasses import dataclass, field
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

T = TypeVar("T")


class Problem(Struct, frozen=True):
    code: str
    status: int
    title: str
    retry_after: int | None = None
    help: str = ""

    def says(self, help: str) -> "Problem":
        return replace(self, help=help)


_ALL = [
    # Problems that a caller of a webhook can get.
    Problem("webhook_not_found", 404, "No such webhook").says(
        "The short code in the URL belongs to no webhook. Copy the URL again from the webhook's page."
    ),
    Problem("method_not_allowed", 405, "Method not allowed").says("Call a webhook with POST."),
    Problem("webhook_disabled", 403, "Webhook is disabled").says(
        "The webhook is disabled. Enable it to accept calls."
    ),
    Problem("ip_not_allowed", 403, "Address not allowed").says(
        "The call came from an address that is not on this webhook's allowlist."
    ),
    Problem("origin_not_allowed", 403, "Origin not allowed").says(
        "The page's origin is not on this webhook's CORS list."
    ),
    Problem("payload_too_large", 413, "Payload too large").says(
        "The body is larger than this webhook's payload limit, or an array of more than 2,000 elements."
    ),
    Problem("headers_too_large", 431, "Headers too large").says(
        "The request line and the headers are larger than 32 KiB together."
    ),
    Problem("request_timeout", 408, "Request took too long").says(
        "The request did not arrive completely in time."
    ),
    Problem("malformed_request", 400, "Malformed request").says(
        "The bytes received are not a valid HTTP request."
    ),
    Problem("too_much_around_chunks", 400, "Chunks have too much overhead").says(
        "The chunks' headers, extensions and trailers are larger than the chunks. Send chunks of five bytes or more, "
        "without long extensions or trailers."
    ),
    Problem("credential_missing", 401, "Credential missing").says(
        "The call carries no token where this webhook expects one."
    ),
    Problem("credential_mismatch", 401, "Credential does not match").says(
        "The call carries a token that is neither the main nor the second one; with HTTP Basic, it may be the username that differs."
    ),
    Problem("signature_missing", 401, "Signature missing").says(
        "The call carries no signature where this webhook's scheme expects one."
    ),
    Problem("signature_malformed", 401, "Signature malformed").says(
        "The signature, or a value that is signed, does not have the form that the scheme describes."
    ),
    Problem("signature_mismatch", 401, "Signature does not match").says(
        "The signature was made with another secret or over other bytes."
    ),
    Problem("signing_keys_unavailable", 503, "Signing keys unavailable").says(
        "The sender's public keys could not be fetched, so the call could not be checked. Send it again."
    ),
    Problem("timestamp_missing", 401, "Timestamp missing").says(
        "The scheme signs a timestamp, and the call carries none."
    ),
    Problem("timestamp_malformed", 401, "Timestamp malformed").says(
        "The signed timestamp does not have the form that the scheme describes."
    ),
    Problem("timestamp_expired", 401, "Timestamp expired").says(
        "The call was signed longer ago than the scheme's validity time."
    ),
    Problem("timestamp_in_future", 401, "Timestamp in the future").says(
        "The signed timestamp is later than now. One of the two clocks is wrong."
    ),
    Problem("rate_limited", 429, "Too many calls", 1).says(
        "Send the call again after the time in Retry-After, and send fewer calls a second."
    ),
    Problem("unsupported_media_type", 415, "Unsupported media type").says(
        "Send JSON or a form. A setting of the webhook also allows XML."
    ),
    Problem("unsupported_transfer_coding", 501, "Transfer coding not supported").says(
        "The only Transfer-Encoding that is understood is chunked, alone."
    ),
    Problem("malformed_json", 400, "Malformed JSON").says(
        "The body cannot be read. JSON must be valid and nested at most 100 levels deep; "
        "a form must be complete, with at most 1,000 fields; a compressed body must be complete."
    ),
    Problem("payload_not_an_object", 400, "Payload is not an object").says(
        "The body is JSON, but not an object."
    ),
    Problem("workflow_failed", 502, "Answering failed").says(
        "The workflow, or the program in its place, could not be started or reached, or ended with an error. The call is stored."
    ),
    Problem("response_timeout", 504, "No answer in time").says(
        "No answer came before the time-out. The call is stored. Its workflow goes on, or is started later."
    ),
    Problem("temporarily_unavailable", 503, "Temporarily unavailable", 5).says(
        "The call could not be stored, so nothing was accepted. Send it again."
    ),
    Problem("fetch_failed", 502, "Fetch failed").says("The schedule's source gave no usable answer."),
    # More problems that a user of the management surfaces can get.
    Problem("invalid_request", 422, "Invalid request").says(
        "One or more fields are wrong; each is named under errors."
    ),
    Problem("not_authenticated", 401, "Not signed in").says(
        "Send an API key as Authorization: Bearer pk_…, or sign in."
    ),
    Problem("access_denied", 403, "Not allowed").says("Your access level does not allow this."),
    Problem("not_found", 404, "Not found").says("There is nothing with this id, or it has been deleted."),
    Problem("conflict", 409, "Conflict").says("The current state does not allow this."),
    Problem("version_conflict", 412, "Changed meanwhile").says(
        "Somebody changed it since you read it. Read it again, and repeat your change."
    ),
    Problem("idempotency_mismatch", 422, "Idempotency key reused").says(
        "This Idempotency-Key was used before with another request."
    ),
    Problem("gone", 410, "Gone").says("Another answer to this call was first, or its deadline has passed."),
    Problem("engine_unavailable", 503, "Engine unavailable", 5).says(
        "The workflow engine cannot be reached now. Nothing is lost; try again."
    ),
    Problem("internal_error", 500, "Internal error").says("Postern made an error. Its log has the details."),
]

PROBLEMS = {problem.code: problem for problem in _ALL}


class FieldError(Struct, frozen=True):
    """A wrong field: its place (``authentication.headerName``) and how to correct it."""

    field: str
    message: str


class FieldsRefused(ValueError):
    """``errors``: what is wrong within the checked value, by field or by place in a list."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(errors.values()))
        self.errors = errors


class FieldRefused(FieldsRefused):
    def __init__(self, field: str, message: str) -> None:
        super().__init__({field: message})
        self.field = field


@dataclass
class Refused(Exception):
    """Raised by use cases: a code, and a sentence for this occasion. It never carries a secret."""

    code: str
    detail: str = ""
    errors: list[FieldError] = field(default_factory=list)
    retry_after: int | None = None
    """Seconds, if this occasion needs another number than the problem's own."""

    def __post_init__(self) -> None:
        # Raised here, the trace shows where the unknown code was written.
        if self.code not in PROBLEMS:
            raise LookupError(f"there is no problem {self.code!r}")

    @property
    def problem(self) -> Problem:
        return PROBLEMS[self.code]

    def __str__(self) -> str:
        return f"{self.code}: {self.detail or self.problem.help}"


def invalid(field: str, message: str) -> Refused:
    """The refusal of a request with one wrong field."""
    return Refused("invalid_request", errors=[FieldError(field, message)])


def refuse_wrong(errors: list[FieldError]) -> None:
    """Raises ``Refused`` if a field is wrong."""
    if errors:
        raise Refused("invalid_request", errors=errors)


def existing(value: T | None, otherwise: str) -> T:
    """Returns the value. Raises ``Refused``, with these words, if there is nothing."""
    if value is None:
        raise Refused("not_found", otherwise)
    return value


class Gone(Refused):
    """Retention deleted the invocation after it was read and before it was used."""

    def __init__(self) -> None:
        super().__init__("not_found", "retention has just deleted this invocation")


class FetchTrouble(Exception):
    """A fetch got no answer. The detail is for the user who configured the URL."""

    def __init__(self, detail: str, status: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
