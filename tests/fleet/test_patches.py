"""A recipe with patches: an image is derived from a pinned base, checked, run, and reverted."""

from collections.abc import Iterator

import pytest

from tests.fleet.site import Site, all_bare, answers, container, ssh

HOSTS = ("spark-1", "spark-2")
INVENTORY, LOCK, RECIPE = "inventory/patched.py", ".sparkwright/patched.lock", "mine/patched.yaml"
PACKAGES = "/usr/lib/python3/dist-packages"
NAME = "qwen36-35b-a3b-heretic-dflash"
PATCHES = f"""\
kind: recipe
name: {NAME}
extends: true
patches:
  - files: [{{at: /opt/added.json, source: added.json}}]
  - {{patch: fix.patch, into: {PACKAGES}}}
  - promises: {{imports: [patched]}}
"""
DIFF = """\
--- a/uvicorn.py
+++ b/uvicorn.py
@@ -1,3 +1,4 @@
+PATCHED = True
 import sys
 
 sys.path.insert(0, "/opt/fake-vllm")
--- /dev/null
+++ b/patched.py
@@ -0,0 +1 @@
+PATCHED = True
"""
OURS = "docker image ls --format '{{.Repository}}:{{.Tag}}' 'sparkwright.local/*'"


@pytest.fixture
def patched(site: Site) -> Iterator[Site]:
    """Two bare hosts, and a site whose own catalog patches their recipe."""
    all_bare(site)
    (site.folder / "mine").mkdir(exist_ok=True)
    (site.folder / LOCK).unlink(missing_ok=True)
    (site.folder / RECIPE).write_text(PATCHES)
    (site.folder / "mine/added.json").write_text("{}")
    (site.folder / "mine/fix.patch").write_text(DIFF)
    text = (site.folder / "inventory/virtual.py").read_text()
    text += "\nrtx50 = []\nfor _, _data in sparks:\n"
    text += "    _data['catalog_directories'] = ('lab/catalog', 'mine')\n"
    text += f"    if Path({LOCK!r}).is_file():\n        _data['lock_file'] = {LOCK!r}\n"
    (site.folder / INVENTORY).write_text(text)
    yield site
    site.repair()


@pytest.mark.timeout(900)
def test_a_derived_image_runs_on_two_hosts_and_is_reverted(patched: Site) -> None:
    refused = patched.run("--yes", inventory=INVENTORY)
    assert refused.code == 2
    assert "patched-base" in refused.output
    patched.sparkwright("lock", INVENTORY, "--data", f"lock_file={LOCK}")
    assert '"patch": "fix.patch"' in patched.sparkwright("plan", INVENTORY)

    run = patched.deploy(inventory=INVENTORY)
    images = {ssh(host, OURS) for host in HOSTS}
    (image,) = images
    assert image.startswith(f"sparkwright.local/{NAME}:sha256-")
    # The second image has the same base and the same layer.
    last = "docker image inspect -f '{{json .RootFS.Layers}}' " + image
    assert len({ssh(host, last) for host in HOSTS}) == 1
    for host in HOSTS:
        assert answers(patched, host)
        runs = ssh(host, "docker inspect -f '{{.Config.Image}}' sparkwright-qwen36")
        assert runs == image, run.output
        read = f"docker exec sparkwright-qwen36 cat /opt/added.json {PACKAGES}/uvicorn.py"
        assert ssh(host, read).startswith("{}PATCHED = True\nimport sys")
    assert patched.deploy(inventory=INVENTORY).changed == set()

    # The steps are recorded for another base than the lock's, until a user has checked them.
    lock = patched.folder / LOCK
    text = lock.read_text()
    head, mark, digest = text.rpartition("sha256:")
    lock.write_text(f"{head}{mark}{'0' * 64}{digest[64:]}")
    refused = patched.run("--yes", inventory=INVENTORY)
    assert refused.code == 2
    assert f"--patched {NAME}" in " ".join(refused.output.split())
    patched.sparkwright("lock", INVENTORY, "--patched", NAME)
    assert lock.read_text() == text
    assert patched.deploy(inventory=INVENTORY).changed == set()

    before = {host: container(host) for host in HOSTS}
    for old, new, fault in (
        ("imports: [patched]", "imports: [missing]", "No module named 'missing'"),
        ("PATCHED = True\n import", "PATCHED = True\n exports", "hunk 1 does not fit"),
    ):
        file = RECIPE if "imports" in old else "mine/fix.patch"
        patched.edit(file, old, new)
        broken = patched.run("--yes", inventory=INVENTORY)
        assert broken.code == 1
        assert broken.refused == set(HOSTS)
        assert fault in broken.output
        assert {host: container(host) for host in HOSTS} == before
        assert {ssh(host, OURS) for host in HOSTS} == images
        patched.edit(file, new, old)

    # Another image under the base's name on a host is ignored: the base is pulled by its digest.
    base = "$(docker image ls --format '{{.Repository}}:{{.Tag}}' | grep ^ghcr | head -1)"
    ssh("spark-1", f"tar c -T /dev/null | docker import - evil && docker tag evil {base}")
    patched.edit("mine/added.json", "{}", "[]")
    patched.deploy(inventory=INVENTORY)
    assert all(answers(patched, host) for host in HOSTS)

    (patched.folder / RECIPE).unlink()
    patched.deploy(inventory=INVENTORY)
    runs = ssh("spark-1", "docker inspect -f '{{.Config.Image}}' sparkwright-qwen36")
    assert not runs.startswith("sparkwright.local/")
