"""What a browser may ask of the page of a run, and what anybody else is answered (HTTP/1.1, RFC 9112)."""

import re
from typing import Final

from msgspec import Struct

#: the head of a request has at most so many bytes
LONGEST_HEAD: Final = 8192
#: the only names by which the page is reached: another one is somebody else's, whose scripts would read it otherwise
#: (DNS rebinding). The port may be that of a tunnel.
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
#: nobody embeds, keeps or guesses what we answer, and no other site's script gets to read it
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
#: what begins the answer to who wants to follow the run
STREAM: Final = (
    f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{_ALWAYS}Content-Security-Policy: {_NOTHING_ELSE}\r\n\r\n"
    "retry: 2000\n\n"
).encode("ascii")


class Asked(Struct, frozen=True):
    """What to do about a request: ``path`` if it is one of a page, else the ``answer`` that refuses it."""

    path: str = ""
    answer: bytes = b""


def read_request(head: bytes) -> Asked | None:
    """Return what was asked for by what came so far; None if more is to come."""
    end = head.find(_END)
    if end < 0 and len(head) < LONGEST_HEAD:
        return None
    if not 0 <= end <= LONGEST_HEAD:
        return Asked(answer=refusal(431, f"A request has at most {LONGEST_HEAD} bytes here."))
    request, *lines = head[:end].split(b"\r\n")
    found = _REQUEST.fullmatch(request)
    fields = [_FIELD.fullmatch(line) for line in lines]
    if found is None or None in fields:
        return Asked(answer=refusal(400, "This is no request of HTTP/1.1."))
    hosts = [field[2] for field in fields if field is not None and field[1].lower() == b"host"]
    if len(hosts) != 1:
        return Asked(answer=refusal(400, "A request has one Host field."))
    if not _HOST.fullmatch(hosts[0]):
        return Asked(answer=refusal(403, "This page is called 127.0.0.1 or localhost, and by no other name."))
    origins = [field[2] for field in fields if field is not None and field[1].lower() == b"origin"]
    if any(origin.lower() != b"http://" + hosts[0].lower() for origin in origins):
        return Asked(answer=refusal(403, "Pages of other sites get nothing here."))
    if found[1] != b"GET":
        return Asked(answer=refusal(405, "There is nothing to be done here but to look (GET)."))
    return Asked(path=found[2].partition(b"?")[0].decode("ascii"))


def refusal(status: int, text: str) -> bytes:
    """Return a whole answer that says why there is no other."""
    return answer(f"{text}\n".encode(), _TEXT, status=status)


def answer(body: bytes, kind: str, policy: str = _NOTHING_ELSE, status: int = 200) -> bytes:
    """Return a whole answer: a body of a media type, with the policy that holds for it in a browser."""
    allow = "Allow: GET\r\n" if status == 405 else ""
    head = (
        f"HTTP/1.1 {status} {_STATUS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"{allow}{_ALWAYS}Content-Security-Policy: {policy}\r\n\r\n"
    )
    return head.encode("ascii") + body
