"""A user's first minutes: the wheel in an empty venv, the user's own site, four commands."""

import json
from pathlib import Path

import pytest

from sparkwright import __version__
from sparkwright.config.inventory import read_inventory
from sparkwright.site.fleet import plan_fleet
from tests.install.conftest import User
from tests.unit.builders import locked

# All tests of this module share one venv, even if tests run in parallel (--dist loadgroup).
pytestmark = [pytest.mark.install, pytest.mark.xdist_group("install")]

HOSTS = [
    *("--host", "spark-1.invalid", "--gpu", "gb10"),
    *("--host", "rtx-1.invalid", "--gpu", "rtx5090"),
]


@pytest.fixture(scope="module")
def lab(user: User) -> Path:
    """A new site, by `sparkwright init`."""
    done = user.run("sparkwright", "init", "my-lab", *HOSTS)
    assert done.returncode == 0, done.stderr
    return user.home / "my-lab"


def _lock(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the lock that `sparkwright lock` would write with registry and hub."""
    monkeypatch.chdir(site)
    hosts = plan_fleet(read_inventory(Path("inventory/lab.py"))).or_raise().values()
    (site / "fleet.lock").write_text(locked(*[host.plan for host in hosts]))


def test_the_entry_point_and_the_module_have_this_version(user: User) -> None:
    for arguments in (("sparkwright", "--version"), ("python", "-m", "sparkwright", "--version")):
        assert user.run(*arguments).stdout == f"sparkwright, version {__version__}\n"


def test_dependencies_are_complete_and_no_development_tool_is_installed(user: User) -> None:
    assert user.run("python", "-m", "pip", "check").returncode == 0
    listed = user.run("python", "-m", "pip", "list", "--format", "json").stdout
    names = {package["name"].lower() for package in json.loads(listed)}
    assert {"sparkwright", "pyinfra"} <= names
    assert not names & {"mypy", "pytest", "ruff", "hypothesis", "hatchling"}


def test_a_new_site_is_checked_and_shown(user: User, lab: Path) -> None:
    done = user.run("sparkwright", "check", "inventory/lab.py", folder=lab)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("2 hosts, 2 services: 0 errors")
    for name in ("plan inventory/lab.py", "catalog list", "advise chat", "endpoints"):
        done = user.run("sparkwright", *name.split(), folder=lab)
        assert done.returncode == 0, (name, done.stderr)


def test_a_dry_run_is_planned_and_names_unreachable_hosts(
    user: User, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lock(lab, monkeypatch)
    done = user.run("pyinfra", "inventory/lab.py", "deploy.py", "--dry", folder=lab)
    text = done.stdout + done.stderr
    assert done.returncode == 1, text
    assert "Traceback" not in text
    for host in ("spark-1.invalid", "rtx-1.invalid"):
        assert f"{host}: not reached: " in text
    assert text.count("qwen36") >= 2
    assert not (lab / ".sparkwright/last-run.json").exists()  # a dry run leaves no record


def test_without_a_lock_an_unreachable_registry_is_reported_before_any_change(
    user: User, lab: Path
) -> None:
    (lab / "fleet.lock").unlink(missing_ok=True)
    mirrors = '{"ghcr.io": "http://registry.invalid:5000"}'
    arguments = ["inventory/lab.py", "deploy.py", "--dry", "--data", f"image_mirrors={mirrors}"]
    arguments += ["--data", "hub_endpoint=http://hub.invalid"]
    done = user.run("pyinfra", *arguments, folder=lab)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "nothing was touched" in done.stderr
    assert "registry.invalid" in done.stderr


def test_an_inventory_imports_modules_of_its_site(user: User, lab: Path) -> None:
    (lab / "machines.py").write_text('NAMES = ["spark-1.invalid"]\n')
    (lab / "inventory/mine.py").write_text("import machines\n\nsparks = machines.NAMES\n")
    done = user.run("sparkwright", "check", "inventory/mine.py", folder=lab)
    assert done.stdout.startswith("1 host, 1 service:"), done.stderr


def test_roles_of_the_site_precede_the_librarys_roles(user: User, lab: Path) -> None:
    for role in ("hello", "smoke"):
        (lab / "roles" / role).mkdir(parents=True)
        (lab / "roles" / role / "__init__.py").write_text("")
    (lab / "where.py").write_text(
        "from roles import hello, preflight, smoke\n\n"
        "for role in (hello, preflight, smoke):\n"
        "    print('role', role.__name__, role.__file__)\n"
    )
    (lab / "inventory/here.py").write_text('here = [("@local", {"services": {}})]\n')
    done = user.run("pyinfra", "inventory/here.py", "where.py", "--dry", folder=lab)
    places = dict(line.split()[1:] for line in done.stdout.splitlines() if line.startswith("role "))
    assert places["roles.hello"] == str(lab / "roles/hello/__init__.py")
    assert places["roles.smoke"] == str(lab / "roles/smoke/__init__.py")
    assert places["roles.preflight"].startswith(str(user.venv))


def test_templates_and_catalog_of_the_site_take_precedence(
    user: User, lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lock(lab, monkeypatch)
    (lab / "templates/serving").mkdir(parents=True)
    (lab / "templates/serving/unit.service.j2").write_text("# mine\n")
    (lab / "catalog").mkdir()
    (lab / "catalog/mine.yaml").write_text(
        "kind: recipe\nname: qwen36-35b-a3b-heretic-dflash\nextends: true\ntitle: mine\n"
    )
    shown = user.run("sparkwright", "catalog", "show", "qwen36-35b-a3b-heretic-dflash", folder=lab)
    assert "mine" in shown.stdout, shown.stderr
    done = user.run("sparkwright", "render", "inventory/lab.py", "rendered", folder=lab)
    assert done.returncode == 0, done.stderr
    units = [path.read_text() for path in (lab / "rendered").rglob("*.service")]
    assert "# mine\n" in units
