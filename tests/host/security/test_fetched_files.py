"""A local user tries to change weights after they were verified, or files that root writes
meanwhile.
"""

import hashlib
import json
import os
from pathlib import Path

import pytest

from sparkwright.host.lib import receipt
from tests.host.fetch.conftest import Fetch
from tests.host.fetch.fake_hub import COMMIT
from tests.host.security.conftest import UID, as_user

ONE = "model-00001-of-00002.safetensors"


def _cached(fetching: Fetch, users: Path) -> Path:
    """The user's own download of one file."""
    blob = users / "hub" / "blobs" / hashlib.sha256(fetching.hub.files[ONE]).hexdigest()
    blob.parent.mkdir(parents=True)
    blob.write_bytes(fetching.hub.files[ONE])
    for path in (blob, blob.parent, blob.parent.parent):
        os.chown(path, UID, UID)
    return blob


def _rewrite(path: Path) -> None:
    """The owner changes one byte, and restores the file's time."""
    as_user('touch -r "$1" "$2"; printf X | dd of="$1" bs=1 seek=999 conv=notrunc 2>/dev/null;'
            ' touch -r "$2" "$1"', path, path.parent / "time")  # fmt: skip


def test_the_owner_of_an_adopted_file_cannot_change_the_content(
    fetching: Fetch, users: Path
) -> None:
    blob = _cached(fetching, users)
    output = fetching.complete(adopt=[str(users)])
    assert f"{ONE}: copied from {blob}" in output or f"{ONE}: cloned from {blob}" in output
    _rewrite(blob)
    assert blob.read_bytes() != fetching.hub.files[ONE]
    fetching.assert_whole()
    about = (fetching.destination / ONE).stat()
    assert (about.st_uid, about.st_nlink, about.st_mode & 0o777) == (0, 1, 0o644)


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_file_below_a_shared_directory_is_copied(
    fetching: Fetch, folder: Path, mode: int
) -> None:
    shared = folder / "shared/models"
    shared.mkdir(parents=True)
    (shared / ONE).write_bytes(fetching.hub.files[ONE])
    shared.parent.chmod(mode)
    fetching.complete(adopt=[str(shared)])
    assert not (fetching.destination / ONE).samefile(shared / ONE)


def test_a_file_that_only_root_can_write_is_linked(fetching: Fetch, folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / ONE).write_bytes(fetching.hub.files[ONE])
    fetching.complete(adopt=[str(folder / "mine")])
    assert (fetching.destination / ONE).samefile(folder / "mine" / ONE)


def test_a_rewritten_hard_link_is_fetched_again(fetching: Fetch, users: Path) -> None:
    """A fleet of an earlier version: a file of the model is a hard link to the user's file."""
    fetching.complete()
    file = fetching.destination / ONE
    blob = users / "blob"
    file.rename(blob)
    os.chown(blob, UID, UID)
    os.link(blob, file)
    _rewrite(blob)
    fetching.complete()


def test_a_forged_receipt_is_ignored(fetching: Fetch) -> None:
    """A user's model directory with a receipt of a complete model."""
    fetching.complete()
    evil = bytearray(fetching.hub.files[ONE])
    evil[999] ^= 1
    file, note = fetching.destination / ONE, fetching.destination / receipt.NAME
    file.write_bytes(evil)
    text = json.loads(note.read_text())
    text["files"][ONE]["mtime_ns"] = file.stat().st_mtime_ns
    note.write_text(json.dumps(text))
    os.chown(note, UID, UID)
    assert receipt.check(str(fetching.destination), COMMIT) == "has no receipt"
    fetching.complete()


@pytest.mark.parametrize("inner", [".", "tokenizer"])
def test_a_model_with_a_directory_of_another_user_is_incomplete(
    fetching: Fetch, inner: str
) -> None:
    fetching.complete()
    os.chown(fetching.destination / inner, UID, UID)
    fault = receipt.check(str(fetching.destination), COMMIT)
    assert fault is not None
    assert "belongs to user nobody" in fault
    fetching.complete()
    assert (fetching.destination / inner).stat().st_uid == 0
    assert receipt.check(str(fetching.destination), COMMIT) is None


def _users_parent(fetching: Fetch) -> None:
    """The models' root belongs to root; a user made the model's own directory."""
    fetching.destination.parent.mkdir(parents=True)
    os.chown(fetching.destination.parent, UID, UID)


def test_a_foreign_staging_directory_and_its_forged_note_are_removed(fetching: Fetch) -> None:
    _users_parent(fetching)
    evil = bytearray(fetching.hub.files[ONE])
    evil[999] ^= 1
    (fetching.stage / "files").mkdir(parents=True)
    file = fetching.stage / "files" / ONE
    file.write_bytes(evil)
    listed = next(item for item in fetching.hub.listing() if item["path"] == ONE)
    entry = {key: listed[key] for key in ("size", "sha256", "blob_id")}
    entry["mtime_ns"] = file.stat().st_mtime_ns
    (fetching.stage / "verified.json").write_text(json.dumps({ONE: entry}))
    for path in (fetching.stage, *fetching.stage.rglob("*")):
        os.chown(path, UID, UID)
    fetching.complete("was not made by root: removing it")
    assert fetching.destination.parent.stat().st_uid == 0


def test_a_staging_directory_that_is_a_link_is_not_followed(fetching: Fetch, folder: Path) -> None:
    victim = folder / "victim"
    victim.mkdir()
    (victim / "holder.json").write_text("root's own")
    _users_parent(fetching)
    as_user('ln -s "$1" "$2"', victim, fetching.stage)
    fetching.complete()
    assert {path.name: path.read_text() for path in victim.iterdir()} == {
        "holder.json": "root's own"
    }


def test_a_state_directory_that_a_user_has_linked_is_not_written_to(
    fetching: Fetch, users: Path, folder: Path
) -> None:
    victim = folder / "victim"
    victim.mkdir()
    (victim / "progress.json").write_text("root's own")
    as_user('ln -s "$1" "$2"', victim, users / "state")
    fetching.here(state_dir=str(users / "state"))
    assert {path.name: path.read_text() for path in victim.iterdir()} == {
        "progress.json": "root's own"
    }
