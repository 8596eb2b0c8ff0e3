"""apt repositories on the depot, signed: Debian's own packages, and fakes of NVIDIA's packages.

Only bare hosts use the repositories. The signing key is made and removed with the fleet.
"""

import email.utils
import hashlib
import shutil
import subprocess
from pathlib import Path

from lab import base, fakes
from lab.layout import APT_PORT, DEPOT, STATE

PLACE = STATE / "depot" / "apt"
ADDRESS = f"http://{DEPOT.address}:{APT_PORT}"
#: Public half of the key that signs both repositories.
KEY = PLACE / "key.asc"
_HOME = STATE / "gnupg"
_KEYRING = "usr/share/keyrings/sparkwright-lab.asc"
_NEW = "touch /run/sparkwright-lab-new-driver"
#: Fakes of NVIDIA's packages: the files of each, and the commands after its installation.
_FAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "nvidia-container-toolkit": (fakes.TOOLKIT, "true"),
    "nvidia-open": (("nvidia-smi",), _NEW),
    "linux-headers-amd64": ((), "true"),
}


def publish(bare: Path, folder: Path = PLACE, home: Path = _HOME) -> None:
    """Make both repositories, once per fleet; a killed attempt leaves no repository.

    Args:
        bare: base of the bare hosts, with Debian's packages.
        home: gpg's own directory.
    """
    if (folder / "key.asc").exists():
        return
    for name in ("debian", "nvidia"):
        shutil.rmtree(folder / name, ignore_errors=True)
    pool = folder / "debian/pool"
    pool.mkdir(parents=True)
    for deb in sorted((bare / base.DEBS).glob("*.deb")):
        # An epoch's colon is encoded in the file's name, and would be encoded again in a URL.
        shutil.copyfile(deb, pool / deb.name.replace("%3a", "-"))
    for name, (programs, after) in _FAKES.items():
        _package(folder / "nvidia", name, programs, after)
    key = _key(home)
    _index(folder / "debian", f"dists/{base.SUITE}", "main/binary-amd64", home)
    _index(folder / "nvidia", ".", ".", home)
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "gpg-agent"], check=False)
    (folder / "key.asc").write_text(key)


def use(root: Path) -> None:
    """Make the depot the source of a host's Debian packages."""
    (root / _KEYRING).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(KEY, root / _KEYRING)
    source = f"deb [signed-by=/{_KEYRING}] {ADDRESS}/debian {base.SUITE} main\n"
    (root / "etc/apt/sources.list").write_text(source)
    for path in (root / base.DEBS).glob("*.deb"):
        path.unlink()  # hosts fetch these from the depot


def _package(folder: Path, name: str, programs: tuple[str, ...], after: str) -> None:
    """A package of fakes."""
    tree = folder / f".{name}"
    for program in programs:
        target = tree / "usr/bin" / program
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(fakes.HERE / program, target)
        target.chmod(0o755)
    control = tree / "DEBIAN"
    control.mkdir(mode=0o755, parents=True)
    (control / "control").write_text(
        f"Package: {name}\nVersion: 1.0-fake\nArchitecture: amd64\nMaintainer: sparkwright lab\n"
        f"Description: FAKE for {name} (sparkwright lab)\n"
    )
    script = control / "postinst"
    script.write_text(f"#!/bin/sh\nset -e\n{after}\n")
    script.chmod(0o755)
    arguments = ["dpkg-deb", "--build", "--root-owner-group", str(tree)]
    _run(*arguments, str(folder / f"{name}_1.0-fake_amd64.deb"))
    shutil.rmtree(tree)


def _index(repository: Path, suite: str, component: str, home: Path) -> None:
    """Write Packages, Release and InRelease; apt requests InRelease first."""
    texts = []
    for deb in sorted(repository.rglob("*.deb")):
        data = deb.read_bytes()
        texts.append(
            _run("dpkg-deb", "-f", str(deb)).strip()
            + f"\nFilename: {deb.relative_to(repository)}\nSize: {len(data)}\n"
            f"SHA256: {hashlib.sha256(data).hexdigest()}\n"
        )
    release = repository / suite
    packages = release / component / "Packages"
    packages.parent.mkdir(parents=True, exist_ok=True)
    packages.write_text("\n".join(texts))
    sum_of = hashlib.sha256(packages.read_bytes()).hexdigest()
    name = packages.relative_to(release)
    text = (
        f"Origin: sparkwright lab\nSuite: {base.SUITE}\nCodename: {base.SUITE}\n"
        f"Date: {email.utils.formatdate(usegmt=True)}\nArchitectures: amd64\nComponents: main\n"
        f"SHA256:\n {sum_of} {packages.stat().st_size} {name}\n"
    )
    (release / "Release").write_text(text)
    _gpg(home, "--yes", "--clearsign", "--output", str(release / "InRelease"),
         str(release / "Release"))  # fmt: skip


def _key(home: Path) -> str:
    """Public half of the fleet's own signing key."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700, parents=True)
    arguments = ("sparkwright lab <lab@example.invalid>", "ed25519", "sign", "never")
    _gpg(home, "--passphrase", "", "--quick-generate-key", *arguments)
    return _gpg(home, "--armor", "--export")


def _gpg(home: Path, *arguments: str) -> str:
    return _run("gpg", "--homedir", str(home), "--batch", "--quiet", "--pinentry-mode", "loopback",
                *arguments)  # fmt: skip


def _run(*arguments: str) -> str:
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{arguments[0]} failed:\n{(done.stdout + done.stderr).strip()[-2000:]}")
    return done.stdout
