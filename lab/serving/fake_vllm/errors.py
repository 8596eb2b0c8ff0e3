"""Errors in answers to requests, in vLLM's form."""

from .http_server import Response
from .text import compact


class ApiError(Exception):
    """HTTP status of an error, its kind, such as `BadRequestError`, and the wrong field, if any."""

    def __init__(self, status: int, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.param = param

    def response(self) -> Response:
        """The response to send."""
        error = {
            "message": self.message,
            "type": self.kind,
            "param": self.param,
            "code": self.status,
        }
        return Response(self.status, compact({"error": error}).encode())


def bad_request(message: str, param: str | None = None) -> ApiError:
    """Error for a request that can't be served: status 400."""
    return ApiError(400, "BadRequestError", message, param)
