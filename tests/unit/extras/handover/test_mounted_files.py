"""Hand-over of files, of the names of secrets, and of derived images."""

from base64 import b64decode, b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.catalog.files import Patch
from sparkwright.documents.text_files import write
from sparkwright.extras.handover.formats import handover
from sparkwright.findings.user_error import UserError
from sparkwright.plan.patches import steps_of
from tests.libyaml import safe_load_all
from tests.unit import builders
from tests.unit.builders import resolution
from tests.unit.extras.handover.test_kubernetes import validate
from tests.unit.plan.test_release import DIFF, FIX, IMAGE, PATCHED
from tests.unit.site.test_files import AT, GOOD, TOKEN, plan


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("form", ["kubernetes", "quadlet"])
def test_files_and_names_of_secrets_are_handed_over(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOL_TOKEN", TOKEN)
    planned = plan(secrets=[{"name": "tool_token", "variable": "TOOL_TOKEN"}])
    handed = handover(form, planned, planned.services[0], resolution(planned))
    written = "".join(
        text.decode() if isinstance(text, bytes) else text for text in handed.files.values()
    )
    assert TOKEN not in written
    assert GOOD in written or b64encode(GOOD.encode()).decode() in written
    assert AT in written
    assert set(handed.secrets) == {"", "tool_token"}
    if form == "kubernetes":
        kinds = [item["kind"] for item in safe_load_all(written)]
        assert kinds == ["Deployment", "ConfigMap", "Service", "NetworkPolicy"]


@pytest.mark.usefixtures("here")
def test_files_of_more_than_a_config_map_holds_are_several() -> None:
    listed = [{"at": f"/opt/{name}", "source": f"{name}.txt"} for name in "ab"]
    for item in listed:
        write(Path("catalog", item["source"]), item["at"].ljust(999_999))
    planned = plan(files=listed, arguments={})
    (text,) = handover(
        "kubernetes", planned, planned.services[0], resolution(planned)
    ).files.values()
    validate(str(text))
    deployment, *maps, _, _ = safe_load_all(str(text))
    pod = deployment["spec"]["template"]["spec"]
    mounts = {item["mountPath"]: item for item in pod["containers"][0]["volumeMounts"]}
    volumes = {item["name"]: item.get("configMap", {}).get("name") for item in pod["volumes"]}
    contents = {item["metadata"]["name"]: item["binaryData"] for item in maps}
    for item in listed:
        mount = mounts[item["at"]]
        content = b64decode(contents[volumes[mount["name"]]][mount["subPath"]])
        assert content == item["at"].ljust(999_999).encode()
    assert all(
        sum(map(len, map(b64decode, data.values()))) <= 1 << 20 for data in contents.values()
    )


@pytest.mark.parametrize("form", ["kubernetes", "quadlet"])
def test_a_kv_cache_on_a_disk_is_for_root_alone(form: str) -> None:
    offload = {"gib": 8, "disk": "/mnt/fast"}
    planned = builders.plan({"s": {**builders.SPARK["qwen36"], "kv_offload": offload}})
    handed = handover(form, planned, planned.services[0], resolution(planned))
    path = "/mnt/fast/sparkwright-kv/s"
    assert handed.directories == (f"sudo install -d -m 0700 {path}",)
    if form == "kubernetes":
        (text,) = handed.files.values()
        pod = next(safe_load_all(str(text)))["spec"]["template"]["spec"]
        (volume,) = [item for item in pod["volumes"] if item["name"] == "kv-offload"]
        assert volume["hostPath"] == {"path": path, "type": "Directory"}


def test_a_derived_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fix.patch").write_text(DIFF)
    recipe = PATCHED.model_copy(update={"patches": (Patch.model_validate(FIX),)})
    steps = steps_of(recipe, IMAGE, tmp_path / "recipe.yaml", "spark-1")
    planned = builders.plan({"s": {"recipe": recipe.name}})
    (service,) = planned.services
    service = replace(service, image=replace(service.image, steps=steps))
    with pytest.raises(UserError, match="derived of"):
        handover("quadlet", planned, service, resolution(planned))
