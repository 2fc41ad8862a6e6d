"""Parse HTTP requests to the live page, and make answers (HTTP/1.1, RFC 9112)."""

import re
from typing import Final

from msgspec import Struct

#: maximum length of the head of a request (bytes)
LONGEST_HEAD: Final = 8192
#: The only host names accepted, against DNS rebinding. The port may differ from the server's, as with an SSH tunnel.
_HOST: Final = re.compile(rb"(?:127\.0\.0\.1|localhost)(?::[0-9]{1,5})?", re.IGNORECASE)
_REQUEST: Final = re.compile(rb"([!-~]{1,32}) (/[!-~]{0,2000}) HTTP/1\.[01]")
_FIELD: Final = re.compile(rb"([A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*")
_END: Final = b"\r\n\r\n"
_STATUS: Final = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    503: "Service Unavailable",
}
#: headers of every answer: other sites may not embed or read it, and nobody may cache it
_ALWAYS: Final = (
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
)
_TEXT: Final = "text/plain; charset=utf-8"
_NOTHING_ELSE: Final = "default-src 'none'; frame-ancestors 'none'"
#: the start of the event stream
STREAM: Final = (
    f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{_ALWAYS}Content-Security-Policy: {_NOTHING_ELSE}\r\n\r\n"
    "retry: 2000\n\n"
).encode("ascii")


class Asked(Struct, frozen=True):
    """What to do with an HTTP request.

    Serve ``path``, or refuse the request with ``answer``.
    """

    path: str = ""
    answer: bytes = b""


def read_request(head: bytes) -> Asked | None:
    """Parse the received bytes of a request; return None if its head is incomplete."""
    end = head.find(_END)
    if end < 0 and len(head) < LONGEST_HEAD:
        return None
    if not 0 <= end <= LONGEST_HEAD:
        return Asked(answer=refusal(431, f"The head of a request may have at most {LONGEST_HEAD} bytes."))
    request, *lines = head[:end].split(b"\r\n")
    found = _REQUEST.fullmatch(request)
    fields = [_FIELD.fullmatch(line) for line in lines]
    if found is None or None in fields:
        return Asked(answer=refusal(400, "This is not a valid HTTP/1.1 request."))
    hosts = [field[2] for field in fields if field is not None and field[1].lower() == b"host"]
    if len(hosts) != 1:
        return Asked(answer=refusal(400, "A request must have exactly one Host field."))
    if not _HOST.fullmatch(hosts[0]):
        return Asked(answer=refusal(403, "Open this page as 127.0.0.1 or localhost; other host names are refused."))
    origins = [field[2] for field in fields if field is not None and field[1].lower() == b"origin"]
    if any(origin.lower() != b"http://" + hosts[0].lower() for origin in origins):
        return Asked(answer=refusal(403, "Requests from pages of other sites are refused."))
    if found[1] != b"GET":
        return Asked(answer=refusal(405, "This page is read-only. Use GET."))
    return Asked(path=found[2].partition(b"?")[0].decode("ascii"))


def refusal(status: int, text: str) -> bytes:
    """Return a complete HTTP answer that refuses a request."""
    return answer(f"{text}\n".encode(), _TEXT, status=status)


def answer(body: bytes, kind: str, policy: str = _NOTHING_ELSE, status: int = 200) -> bytes:
    """Return a complete HTTP answer.

    Args:
        kind: media type of the body.
        policy: Content-Security-Policy.
    """
    allow = "Allow: GET\r\n" if status == 405 else ""
    head = (
        f"HTTP/1.1 {status} {_STATUS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"{allow}{_ALWAYS}Content-Security-Policy: {policy}\r\n\r\n"
    )
    return head.encode("ascii") + body
