"""Rows of usage since a day, from the database of an address."""

from __future__ import annotations

import contextlib
import os
from urllib.parse import quote

from sparkwright.host.lib.records import dataclass


@dataclass(frozen=True)
class UsageRequest:
    """Request for usage.

    Attributes:
        database: its path.
        since: the first day, as ``2026-11-23``.
    """

    database: str
    since: str


@dataclass(frozen=True)
class UsageRow:
    """Usage of a model by a key on a day, in UTC.

    Attributes:
        failed: requests with an error as their answer, or with an answer that its replica cut.
        seconds: from a request's arrival to its answer's end, over all requests.
        cut: requests whose answer did not end, cut by the replica or left by the client.
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
    """Usage by day, key and model; empty if no request was counted yet.

    Raises:
        SystemExit: the database can't be read.
    """
    if not os.path.lexists(request.database):
        return ()
    import sqlite3  # the dashboard asks every host, and few have a database

    try:
        owner, before = os.lstat(request.database).st_uid, os.geteuid()
        if before == 0:  # as the owner, who may have put a link or another file there
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
