"""The lock of a host: held by another run, left empty by a power cut, and released."""

import json
from pathlib import Path

from sparkwright.host import lock
from sparkwright.host.lock import LockRequest, Owner


def test_a_lock_names_its_holder_and_an_empty_one_can_be_broken(tmp_path: Path) -> None:
    held = {"token": "t", "by": "bob@desk", "machine": "m", "pid": 7, "since": 100.5}
    (tmp_path / "lock.json").write_text(json.dumps(held))
    ours = Owner("u", "ann@laptop", "n", 8)
    answer = lock.main(LockRequest(str(tmp_path), take=ours))
    assert not answer.held
    assert answer.by == Owner("t", "bob@desk", "m", 7, 100.5)
    (tmp_path / "lock.json").write_text("")
    answer = lock.main(LockRequest(str(tmp_path), take=ours))
    assert (answer.held, answer.by and answer.by.by) == (False, "somebody")
    assert lock.main(LockRequest(str(tmp_path), take=ours, instead_of=Owner())).held
    written = json.loads((tmp_path / "lock.json").read_text())
    assert list(written) == ["token", "by", "machine", "pid", "since"]
    lock.main(LockRequest(str(tmp_path), release="u"))
    assert json.loads((tmp_path / "lock-last.json").read_text()) == written
