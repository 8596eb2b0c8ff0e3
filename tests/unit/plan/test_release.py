"""Releases and derived images follow their settings; mutations cause problems with a location."""

import json
import os
import re
import signal
import subprocess
import time
from dataclasses import replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.catalog.file_entries import Patch
from sparkwright.checks.configuration import check_host
from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.config.inventory import HostInput
from sparkwright.engines.command_line import argument_words
from sparkwright.findings.user_error import UserError
from sparkwright.host.lib.records import decode, encode
from sparkwright.host.service import Service
from sparkwright.plan.patches import steps_of
from sparkwright.plan.service import container_command, render_service
from sparkwright.resolve.lock import Resolution
from sparkwright.site.fleet import PlannedHost, plan_fleet
from tests.fuzz.drawn_values import DROPPED, changed, json_values, paths
from tests.libyaml import safe_load
from tests.tables import Tables
from tests.unit.builders import DIGEST, RTX, SPARK, alone, catalog, origin, plan, resolution, wanted
from tests.unit.cli.answering import exits, run

cases = Tables(__file__)


def release(services: Any = SPARK, **data: Any) -> Service:
    """The first service's release."""
    host_plan = plan(services, **data)
    return render_service(host_plan, host_plan.services[0], resolution(host_plan))


def compose(text: str) -> dict[str, Any]:
    """The only container of a compose file, as Compose reads it."""
    data = safe_load(text)
    assert list(data["services"]) == ["engine"]
    service: dict[str, Any] = data["services"]["engine"]
    return service


#: The words of the production command on the model's card.
CARD: list[str] = cases.data["CARD"]


def test_the_command_equals_the_command_on_the_card() -> None:
    assert compose(release().compose)["command"] == CARD


def test_an_engine_without_media_domains_gets_no_domains() -> None:
    """The argument exists since 0.11.0; an engine ends at an unknown argument."""
    (service,) = plan({"s": {**SPARK["qwen36"], "media_domains": ["example.org"]}}).services
    for version in (service.version, None):
        arguments = container_command(replace(service, version=version)).arguments
        assert arguments[arguments.index("--allowed-media-domains") + 1] == "example.org"
    command = container_command(replace(service, version="0.10.2"))
    assert "--allowed-media-domains" not in command.arguments
    assert "VLLM_MEDIA_URL_ALLOW_REDIRECTS" not in command.environment


@cases("services", "settings", "dropped")
def test_the_page_cache_of_a_gb10_is_dropped_before_a_start(
    services: dict[str, Any], settings: dict[str, Any], dropped: bool
) -> None:
    (rendered,) = wanted(plan(services, **settings)).services
    lines = [line for line in rendered.unit_text.splitlines() if "drop_caches" in line]
    assert len(lines) == dropped
    for line in lines:
        # `+` runs the command outside the sandbox, and `-` continues the start after a failure.
        assert line.startswith("ExecStartPre=-+/bin/sh -c 'timeout 10 nvidia-smi -L | grep -q GB10")
        assert line.endswith("sync && echo 3 > /proc/sys/vm/drop_caches'")


@cases("settings", "kept")
def test_caches_are_kept_if_the_settings_allow_it(settings: dict[str, Any], kept: bool) -> None:
    rendered = release({"q": {**SPARK["qwen36"], **settings}})
    environment = compose(rendered.compose)["environment"]
    assert ("TRITON_CACHE_DIR" in environment) is kept
    assert ("caches/current" in rendered.compose) is kept
    assert ("boot_caches.py" in rendered.unit_text) is kept


def test_a_recipes_own_path_of_a_cache_is_kept() -> None:
    service = {**SPARK["qwen36"], "environment": {"TRITON_CACHE_DIR": "/x"}}
    assert compose(release({"q": service}).compose)["environment"]["TRITON_CACHE_DIR"] == "/x"


@cases("changed")
def test_every_change_makes_another_release(changed: dict[str, Any]) -> None:
    assert release({"qwen36": {**SPARK["qwen36"], **changed}}).release != release().release


def test_a_value_of_none_removes_an_argument() -> None:
    service = {**SPARK["qwen36"], "arguments": {"enable_prefix_caching": None}}
    assert "--enable-prefix-caching" not in compose(release({"q": service}).compose)["command"]


def test_a_variable_may_be_named_like_a_boolean_of_yaml() -> None:
    environment = {"NO": "0", "y": "1", "Off": "2"}
    service = {**SPARK["qwen36"], "environment": environment}
    assert environment.items() <= compose(release({"q": service}).compose)["environment"].items()


def test_a_dollar_is_not_interpolated_by_compose() -> None:
    service = {**SPARK["qwen36"], "environment": {"A": "$HOME ${X}"}}
    assert compose(release({"q": service}).compose)["environment"]["A"] == "$$HOME $${X}"


@pytest.mark.parametrize("value", ['quo"te', "new\nline", "ünïcode", "{{ x }}", "#", "- a: b"])
def test_any_text_survives_rendering(value: str) -> None:
    service = {**SPARK["qwen36"], "environment": {"A": value}}
    assert compose(release({"q": service}).compose)["environment"]["A"] == value


def test_the_source_of_an_image_does_not_change_the_release() -> None:
    assert release(image_mirrors={"ghcr.io": "http://10.0.0.5:5000"}).release == release().release


@cases("key", "value", "arguments")
def test_arguments_become_command_line_words(key: str, value: Any, arguments: list[str]) -> None:
    assert argument_words(key, value) == arguments


def test_a_service_gets_its_named_gpus_or_every_gpu() -> None:
    uuid = "GPU-22222222-2222-4222-8222-222222222222"
    (chosen,) = wanted(plan({"qwen36": {**RTX["qwen36"], "gpus": [uuid, 1]}})).services
    (every,) = wanted(plan(RTX)).services
    assert _devices(chosen) == [
        {"driver": "nvidia", "capabilities": ["gpu"], "device_ids": [uuid, "1"]}
    ]
    assert _devices(every) == [{"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}]
    assert "            - {driver: nvidia, count: all, capabilities: [gpu]}\n" in every.compose


def _devices(rendered: Service) -> Any:
    service = safe_load(rendered.compose)["services"]["engine"]
    return service["deploy"]["resources"]["reservations"]["devices"]


@pytest.mark.parametrize(
    "gpus", [[], [-1], ["all"], ["GPU-1"], [f"GPU-{'2' * 36}\n- x"], ["$(id)"]]
)
def test_an_invalid_gpu_is_refused(gpus: list[Any]) -> None:
    with pytest.raises(UserError, match="gpus"):
        plan({"qwen36": {**RTX["qwen36"], "gpus": gpus}})


def test_a_host_writes_the_planned_record() -> None:
    """The switch gets the service as JSON, and writes the same record."""
    service = release()
    assert decode(Service, json.loads(json.dumps(encode(service)))).record == service.record


def test_a_kv_cache_on_a_disk_keeps_its_newest_blocks(tmp_path: Path) -> None:
    offload = {"gib": 2e-6, "disk": "/mnt/fast"}
    service = compose(release({"s": {**SPARK["qwen36"], "kv_offload": offload}}).compose)
    source = "/mnt/fast/sparkwright-kv/s/"
    (mount,) = [item for item in service["volumes"] if item["source"].startswith(source)]
    assert mount["target"] in " ".join(service["command"])
    for age in range(4):
        block = tmp_path / f"{age}.bin"
        block.write_bytes(b"x" * 1000)
        os.utime(block, (1e9 - age, 1e9 - age))
    (tmp_path / "config.json").touch()
    start = service["entrypoint"][2].replace("$$", "$").replace("sleep 10", "sleep 0.1")
    program = start.partition("2>/dev/null & ")[2].partition(" & IFS")[0]
    program = program.replace(mount["target"], str(tmp_path))
    with subprocess.Popen(["sh", "-c", program], start_new_session=True) as running:
        try:
            for _ in range(100):
                if len(names := sorted(path.name for path in tmp_path.iterdir())) == 3:
                    break
                time.sleep(0.05)
        finally:
            os.killpg(running.pid, signal.SIGKILL)
    assert names == ["0.bin", "1.bin", "config.json"]


VALID: dict[str, Any] = cases.data["VALID"]
_text = st.text(max_size=12)


def _mutated(path: tuple[Any, ...], value: Any, key: str | None) -> Any:
    """The valid settings with one value replaced, or its key renamed."""
    if key is None or isinstance(path[-1], int):
        return changed(VALID, path, value)
    own = reduce(getitem, path, VALID)
    return changed(changed(VALID, path, DROPPED), (*path[:-1], key), own)


@given(st.sampled_from(paths(VALID)), json_values(_text), st.none() | _text)
def test_any_mutation_yields_a_plan_or_a_problem_with_its_location(
    path: tuple[Any, ...], value: Any, key: str | None
) -> None:
    fleet = plan_fleet([HostInput("spark-1", _mutated(path, value, key), origin)])
    for problem in fleet.problems:
        assert problem.subject.place
        assert problem.observed
        assert problem.remedy
    assert fleet.problems or "spark-1" in fleet.hosts
    for host in fleet.hosts.values():
        for violation in host.violations:
            assert (violation.subject.key or "").startswith("services.")
            assert violation.remedy


_texts = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@given(
    st.sampled_from(sorted(alone())),
    st.dictionaries(st.from_regex(r"[A-Z][A-Z0-9_]{0,10}", fullmatch=True), _texts, max_size=3),
    # A name that begins with a dash is refused: tests/unit/security/test_ways_around.py.
    st.lists(
        _texts.filter(lambda word: not word.startswith("-") and word == word.lstrip()),
        min_size=1, max_size=3, unique=True,
    ),
)  # fmt: skip
def test_rendered_files_read_back_as_planned(
    recipe: str, environment: dict[str, str], names: list[str]
) -> None:
    host = plan({"s": {"recipe": recipe, "environment": environment, "served_names": names}})
    (service,) = host.services
    release = render_service(host, service, resolution(host))
    read = safe_load(release.compose)["services"]["engine"]
    read_environment = read.get("environment", {})
    shown = {key: str(value).replace("$$", "$") for key, value in read_environment.items()}
    for key, value in environment.items():
        assert shown[key] == value
    if service.variables is None:
        command = [word.replace("$$", "$") for word in read["command"]]
        assert command == container_command(service).arguments
        assert any(names[0] in word for word in command)


PATCHED = catalog().recipes["qwen36-35b-a3b-heretic-dflash"]
IMAGE = catalog().images[PATCHED.image]
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"
FIX = {"patch": "fix.patch", "into": "/usr/lib"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "catalog").mkdir()
    (tmp_path / "catalog/fix.patch").write_text(DIFF)
    (tmp_path / "secret").write_text(DIFF)
    (tmp_path / "catalog/link.patch").symlink_to(tmp_path / "secret")
    (tmp_path / "catalog/out.patch").write_text(DIFF.replace("b/x.py", "b/../../etc/passwd"))
    return tmp_path / "catalog"


def _steps(folder: Path, *patches: dict[str, Any], base: str = DIGEST) -> str:
    recipe = PATCHED.model_copy(update={"patches": tuple(map(Patch.model_validate, patches))})
    steps = steps_of(recipe, IMAGE, folder / "recipe.yaml", "spark-1")
    assert steps is not None
    return steps.image(base)


def test_an_images_name_depends_on_its_base_its_steps_and_their_files(folder: Path) -> None:
    name = _steps(folder, FIX)
    assert name.startswith("sparkwright.local/qwen36-35b-a3b-heretic-dflash:sha256-")
    others = {
        _steps(folder, FIX, base=f"sha256:{'cd' * 32}"),
        _steps(folder, {**FIX, "into": "/usr/lib64"}),
        _steps(folder, FIX, {"promises": {"imports": ["vllm"]}}),
    }
    (folder / "fix.patch").write_text(DIFF.replace("+b", "+c"))
    others.add(_steps(folder, FIX))
    assert len({name, *others}) == 5


@cases("patch", "fault")
def test_a_step_reads_no_file_outside_of_its_catalog(
    folder: Path, patch: dict[str, Any], fault: str
) -> None:
    with pytest.raises(UserError, match=r"recipe\.yaml: patches\.0") as error:
        _steps(folder, patch)
    assert fault in str(error.value)


@pytest.mark.parametrize("name", ["my..mine", "mine-", "a___b"])
def test_a_name_that_no_image_can_have_is_refused_in_the_plan(folder: Path, name: str) -> None:
    patched = {"name": name, "patches": (Patch.model_validate(FIX),)}
    with pytest.raises(UserError, match="not a valid name of an image"):
        steps_of(PATCHED.model_copy(update=patched), IMAGE, folder / "recipe.yaml", "spark-1")


@cases("patch", more=[{**FIX, "promises": {"imports": ["vllm"]}}])
def test_a_step_is_data_and_not_a_line_of_a_dockerfile(patch: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"patch|step|files|promises|run|into"):
        Patch.model_validate(patch)


def test_a_service_runs_the_derived_image_and_needs_a_pinned_base(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = catalog()
    recipe = PATCHED.model_copy(update={"patches": (Patch.model_validate(FIX),)})
    monkeypatch.setitem(entries.recipes, recipe.name, recipe)
    monkeypatch.setitem(entries.files, ("recipe", recipe.name), folder / "recipe.yaml")
    host = plan({"s": {"recipe": recipe.name}})
    (service,) = host.services
    assert service.image.steps is not None
    release = render_service(host, service, resolution(host))
    assert f'image: "{service.image.steps.image(DIGEST)}"' in release.compose
    unpinned = replace(service.image, digest=None)
    bare = replace(host, services=(replace(service, image=unpinned),))
    for each, faulty in ((bare, True), (replace(bare, locked=True), False)):
        faults = {item.id for item in check_host(each, entries, assumed_hardware(each))}
        assert ("patched-base" in faults) is faulty


@pytest.fixture
def site(here: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A site whose recipe has patches, and the digests of all images in a registry."""
    entry = f"kind: recipe\nname: mine\nextends: {PATCHED.name}\npatches:\n"
    entry += (
        "  - {patch: fix.patch, into: /usr/lib}\n  - files: [{at: /opt/c, source: fix.patch}]\n"
    )
    # The steps add the two files to the image, so the service does not mount them.
    entry += "arguments: {tool_parser_plugin: /usr/lib/x.py, chat_template: /opt/c}\n"
    (folder / "recipe.yaml").write_text(entry)
    for name in ("link.patch", "out.patch"):
        (folder / name).unlink()
    (here / "inventory.py").write_text(
        "boxes = [('spark-1', {'services': {'s': {'recipe': 'mine'}}, 'gpu': 'gb10'})]\n"
    )
    registry = {"digest": DIGEST}

    def ask(hosts: dict[str, PlannedHost]) -> Resolution:
        answer = resolution(hosts["spark-1"].plan)
        images = {n: replace(i, digest=registry["digest"]) for n, i in answer.images.items()}
        return answer.model_copy(update={"images": images})

    monkeypatch.setattr("sparkwright.cli.lock.ask", ask)
    return registry


def test_patches_over_another_image_are_refused_until_confirmation(
    site: dict[str, str], here: Path
) -> None:
    other, lock = f"sha256:{'cd' * 32}", here / "fleet.lock"
    assert run("lock", "inventory.py").exit_code == 0
    first = lock.read_text()
    assert run("check", "inventory.py").exit_code == 0
    site["digest"] = other
    upgraded = exits(1, "lock", "inventory.py", "--upgrade").output
    remedy = "sparkwright lock INVENTORY --patched mine"
    for output in (
        upgraded,
        exits(2, "check", "inventory.py").output,
        exits(2, "plan", "inventory.py").output,
        exits(1, "lock", "inventory.py").output,  # `lock` changes nothing
    ):
        text = " ".join(output.split())
        assert re.search(rf"made for \S+ at {DIGEST}, and would change \S+ at {other}", text)
        assert remedy in text
    exits(1, "lock", "inventory.py", "--check")
    assert "did you mean 'mine'" in exits(2, "lock", "inventory.py", "--patched", "mne").output
    exits(2, "lock", "inventory.py", "--patched", "mine", "--check")
    site.clear()  # no registry answers, and the run needs no registry
    assert f": {other}" in run("lock", "inventory.py", "--patched", "mine").output
    assert run("check", "inventory.py").exit_code == 0
    # An image of another tag is another base, too; the command fills an empty lock.
    lock.write_text(first.replace("-slim:\n", "-fat:\n").replace("-slim: sha", "-fat: sha"))
    site["digest"] = DIGEST
    assert "-slim at sha256" in exits(1, "lock", "inventory.py").output
    lock.write_text(first.partition("patched:")[0])
    assert "mine's patches is not locked" in exits(2, "check", "inventory.py").output
    assert run("lock", "inventory.py").exit_code == 0
    assert lock.read_text().partition("version:")[0] == first.partition("version:")[0]
