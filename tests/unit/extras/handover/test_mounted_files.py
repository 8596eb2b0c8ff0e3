"""Files of a service in what is handed over, and the names of its secrets alone."""

from base64 import b64encode

import pytest

from sparkwright.extras.handover.formats import handover
from tests.libyaml import safe_load_all
from tests.unit.builders import resolution
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
