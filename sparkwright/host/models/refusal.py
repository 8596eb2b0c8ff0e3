"""Errors with which the address itself answers a request."""

import json

_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class Refused(Exception):
    """A refused request: its status, and the seconds until a retry, if a retry makes sense."""

    def __init__(self, status: int, why: str, retry: int | None = None) -> None:
        super().__init__(why)
        self.status, self.retry = status, retry

    @property
    def body(self) -> str:
        """Return the answer's body in the form of OpenAI's API."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        kind = _TYPES.get(self.status, kind)
        return json.dumps({"error": {"message": str(self), "type": kind, "code": self.status}})
