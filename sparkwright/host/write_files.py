"""Write files on this host as root, all in one run."""

from sparkwright.host.lib import systemd


def main(request: dict[str, tuple[str, int]]) -> list[str]:
    """Write files, given by path with text and mode. Returns a description of each changed file."""
    changed = systemd.write_files(request)
    return [f"wrote {path}" for path in request if path in changed]
