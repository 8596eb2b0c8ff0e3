"""Installation on a laptop without any of sparkwright's files: bare trees of Debian 12 and 13, in
namespaces.

The tests need root, Debian's packages and a package index; no file or mount remains.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab import base
from sparkwright import __version__
from tests.unit.builders import ROOT

pytestmark = [pytest.mark.faults, pytest.mark.skipif(os.geteuid() != 0, reason="mounts: root's")]
#: $1 is the tree, $2 an empty folder for written files, $3 the read-only folder at /srv/dist, $4 a
#: folder for pip's cache, then files of this machine: the access to a package index.
_ENTER = r"""
set -e
tree=$1 work=$2 dist=$3 cache=$4 root=$2/root; shift 4
mount --make-rprivate /
mkdir "$work/upper" "$work/work" "$root"
mount -t overlay overlay -o "lowerdir=$tree,upperdir=$work/upper,workdir=$work/work" "$root"
mount -t proc proc "$root/proc"
mkdir "$root/srv/dist" "$root/srv/cache"
mount --bind -o ro "$dist" "$root/srv/dist"
mount --bind "$cache" "$root/srv/cache"
for file in "$@"; do mkdir -p "$root${file%/*}"; cat "$file" > "$root$file"; done
exec chroot "$root" /bin/bash -e -c "cd; $SCRIPT"
"""
_CONNECTION = ("/etc/resolv.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")
#: A user's first commands. No host of the site exists, so the deploy ends before any connection.
_FIRST = """
sparkwright --version
sparkwright init my-lab --host spark-1.invalid --gpu gb10
cd my-lab
sparkwright check
! sparkwright deploy --dry --data 'image_mirrors={"ghcr.io": "http://registry.invalid:5000"}' \
    --data hub_endpoint=http://hub.invalid
"""
_VENV = "python3 -m venv .venv && . .venv/bin/activate\n"
Laptop = Callable[[str], str]


@pytest.fixture(scope="module")
def dist(wheel: Path, sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel, sdist, and a repository with the checked-out commit."""
    folder = tmp_path_factory.mktemp("dist")
    for file in (wheel, sdist):
        shutil.copy(file, folder)
    clone = ["git", "clone", "--quiet", "--bare", "--single-branch", f"file://{ROOT}"]
    subprocess.run([*clone, folder / "sparkwright.git"], check=True)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """pip's cache: each package is downloaded once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(params=["bookworm", "trixie"])
def laptop(
    request: pytest.FixtureRequest, dist: Path, cache: Path, tmp_path: Path
) -> Iterator[Laptop]:
    """Run a script as root in a bare tree. Return the output; the script must exit with 0."""
    tree = base.ensure_laptop(request.param)
    work = tmp_path / "laptop"

    def run(script: str) -> str:
        work.mkdir()
        connection = [file for file in _CONNECTION if Path(file).exists()]
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name.startswith("PIP_") or name.lower().endswith("_proxy")
        }
        done = subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _ENTER, "sh",
             tree, work, dist, cache, *connection],
            env={**inherited, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
                 "LANG": "C.UTF-8", "PIP_CACHE_DIR": "/srv/cache",
                 "PIP_DISABLE_PIP_VERSION_CHECK": "1", "SCRIPT": script},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=500, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{script}\n{done.stdout[-6000:]}"
        return done.stdout

    yield run
    shutil.rmtree(work, ignore_errors=True)


def starts(printed: str) -> None:
    """Assert that the first commands succeeded, and that the deploy reached the registry."""
    assert f"sparkwright, version {__version__}\n" in printed
    assert "1 host, 1 service: 0 errors" in printed
    assert "registry.invalid" in printed
    assert "nothing was touched" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("source", ["*.whl", "*.tar.gz", "git+file:///srv/dist/sparkwright.git"])
def test_pip_installs_a_wheel_an_sdist_and_a_git_address(laptop: Laptop, source: str) -> None:
    path = source if source.startswith("git") else f"/srv/dist/{source}"
    printed = laptop(f"{_VENV}pip install --quiet {path}\npip check\npyinfra --version\n{_FIRST}")
    starts(printed)
    assert "No broken requirements found." in printed


def test_the_readmes_install_command_is_enough(laptop: Laptop) -> None:
    (line,) = re.findall(
        r"^    (pipx install .*?)(?: +#.*)?$", (ROOT / "README.md").read_text(), re.M
    )
    command = re.sub(r"git\+\S+", "git+https://here.invalid/sparkwright.git", line)
    assert command != line
    # pipx accepts no git address without a host.
    git = "git config --global url.file:///srv/dist/.insteadOf https://here.invalid/\n"
    starts(laptop(f'{git}{command}\nPATH="$HOME/.local/bin:$PATH"\n{_FIRST}'))


def test_uvx_runs_a_wheel_and_a_git_address(dist: Path, tmp_path: Path) -> None:
    if shutil.which("uvx") is None:
        pytest.skip("no uv here")
    environment = {**os.environ, "UV_TOOL_DIR": str(tmp_path / "tools")}
    for source in (next(dist.glob("*.whl")), f"git+file://{dist}/sparkwright.git"):
        command = ["uvx", "--from", source, "sparkwright", "--version"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.stdout == f"sparkwright, version {__version__}\n", done.stderr
