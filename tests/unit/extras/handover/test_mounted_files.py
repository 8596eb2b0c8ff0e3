"""Hand-over of files, of the names of secrets, and of derived images."""

from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.catalog.files import Patch
from sparkwright.extras.handover.formats import handover
from sparkwright.findings.user_error import UserError
from sparkwright.plan.patches import steps_of
from tests.libyaml import safe_load_all
from tests.unit import builders
from tests.unit.builders import resolution
from tests.unit.plan.test_patches import DIFF, FIX, IMAGE, PATCHED
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


def test_a_derived_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fix.patch").write_text(DIFF)
    recipe = PATCHED.model_copy(update={"patches": (Patch.model_validate(FIX),)})
    steps = steps_of(recipe, IMAGE, tmp_path / "recipe.yaml", "spark-1")
    planned = builders.plan({"s": {"recipe": recipe.name}})
    (service,) = planned.services
    service = replace(service, image=replace(service.image, steps=steps))
    with pytest.raises(UserError, match="derived of"):
        handover("quadlet", planned, service, resolution(planned))
