"""One host for tests of fetching: received bytes, and files on its disk."""

from tests.fleet.site import Run, Site, inside

HOST = "spark-2"


def fetch(site: Site, *arguments: str, code: int = 0) -> Run:
    run = site.run("--yes", "--limit", HOST, *arguments, deploy="fetch-deploy.py")
    assert run.code == code, run.output
    return run


def whole() -> bool:
    """Check that every file under a final name has its repository's content."""
    check = (
        "import hashlib, json, pathlib, sys\n"
        "for receipt in pathlib.Path('/opt/models').glob('*/*/.sparkwright-receipt.json'):\n"
        "    for name, entry in json.loads(receipt.read_text())['files'].items():\n"
        "        content = (receipt.parent / name).read_bytes()\n"
        "        if hashlib.sha256(content).hexdigest() != entry['sha256']:\n"
        "            sys.exit(f'{receipt.parent / name} is wrong')\n"
    )
    inside(HOST, "python3", "-c", check)
    return int(inside(HOST, "sh", "-c", "ls -d /opt/models/*/*/ | wc -l")) == 2


def journal() -> str:
    return inside(HOST, "journalctl", "-u", "sparkwright-fetch*", "-o", "cat", "-n", "40")


def parts() -> int:
    """Bytes on the disk that are not under a final name yet."""
    return int(inside(HOST, "sh", "-c", "du -sB1 /opt/models | cut -f1"))
