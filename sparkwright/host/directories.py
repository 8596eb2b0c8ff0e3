"""Make directories with mode and owner. The program runs on the host as root."""

from pathlib import Path

from sparkwright.host.lib import records, trusted


@records.dataclass(frozen=True)
class Directory:
    """A directory, either required or observed.

    Attributes:
        mode: permission bits, e.g. 0o755.
        uid: id of the owner and of the group.
    """

    path: str
    mode: int = 0o755
    uid: int = 0


def main(request: tuple[Directory, ...]) -> None:
    """Make directories or correct their mode and owner, parents first. A second run changes
    nothing.
    """
    for item in request:
        path = Path(item.path)
        if path.is_symlink() and not path.exists():
            raise SystemExit(
                f"{item.path} is a dangling link: remove the link or repair its target"
            )
        if path.exists() and not path.is_dir():
            raise SystemExit(f"{item.path} is not a directory: move it away")
        trusted.set_up(path, item.uid, item.mode)
