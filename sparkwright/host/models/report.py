"""Rows of usage since a given day, from an address's database."""

import contextlib
import os
from urllib.parse import quote

from sparkwright.host.lib.records import dataclass


@dataclass(frozen=True)
class UsageRequest:
    """Request for usage.

    Attributes:
        database: path of the database.
        since: the first day in UTC, e.g. ``2026-11-23``.
    """

    database: str
    since: str


@dataclass(frozen=True)
class UsageRow:
    """Usage of a model by a key on a day, in UTC.

    Attributes:
        failed: requests that got an error, or whose answer the replica cut off.
        seconds: time from a request's arrival to its answer's end, summed over all requests.
        cut: requests whose answer did not end, because the replica or the client closed the
            connection.
    """

    day: str
    key: str
    model: str
    requests: int
    failed: int
    tokens_in: int
    tokens_out: int
    seconds: float
    cut: int


def main(request: UsageRequest) -> tuple[UsageRow, ...]:
    """Return usage by day, key and model; empty if no request was counted yet.

    Raises:
        SystemExit: the database can't be read.
    """
    if not os.path.lexists(request.database):
        return ()
    import sqlite3  # the dashboard queries every host, and few hosts have a database

    try:
        owner, before = os.lstat(request.database).st_uid, os.geteuid()
        if before == 0:  # act as the owner, who may have put a link there
            os.seteuid(owner)
        try:
            uri = f"file:{quote(request.database)}?mode=ro"
            with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=5)) as database:
                query = "SELECT * FROM usage WHERE day >= ? ORDER BY 1, 2, 3"
                return tuple(UsageRow(*row) for row in database.execute(query, (request.since,)))
        finally:
            os.seteuid(before)
    except FileNotFoundError:
        return ()
    except (OSError, sqlite3.Error) as error:
        raise SystemExit(f"{request.database} can't be read: {error}") from None
