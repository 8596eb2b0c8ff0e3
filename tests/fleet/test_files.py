"""Files and secrets of a service on a host: refused, rolled out, rolled back, repaired, kept."""

from collections.abc import Iterator

import pytest

from tests.fleet.bad_tags import DEADLINES
from tests.fleet.site import Site, answers, container, inside, release
from tests.fleet.test_secrets import everywhere

HOST = "spark-1"
TOKEN = "the-token-of-a-tool-server-0123456789"
AT = "/opt/sparkwright/files/chat.jinja"
TEMPLATE = "{% for message in messages %}<{{ message.role }}>{{ message.content }}{% endfor %}"
SETTINGS = (
    f"{DEADLINES} 'files': [{{'at': '{AT}', 'source': 'chat.jinja'}}],"
    " 'secrets': [{'name': 'tool_token', 'variable': 'TOOL_TOKEN'}],"
)


def in_container(path: str) -> str:
    """A file as the engine's process sees it."""
    pid = "$(docker inspect -f '{{.State.Pid}}' sparkwright-qwen36)"
    return inside(HOST, "sh", "-c", f"cat /proc/{pid}/root{path}")


@pytest.fixture(scope="module")
def with_files(site: Site) -> Iterator[Site]:
    """A Spark whose service has a chat template and a secret, deployed."""
    site.power_on()
    site.repair()
    site.edit("group_data/sparks.py", '"port": 8000,', SETTINGS)
    (site.folder / "catalog/chat.jinja").write_text(TEMPLATE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOL_TOKEN", TOKEN)
        site.deploy("--limit", HOST)
        yield site


def test_a_bad_template_is_refused_in_the_plan(with_files: Site) -> None:
    before, path = container(HOST), with_files.folder / "catalog/chat.jinja"
    path.write_text("{% for message in messages %}\n{{ message.content }\n")
    printed = with_files.sparkwright("plan", "inventory/virtual.py", "--limit", HOST, code=2)
    run = with_files.run("--yes", "--limit", HOST)
    path.write_text(TEMPLATE)
    for text in (printed, run.output):
        assert "catalog/chat.jinja: line 2" in text
    assert run.code != 0
    assert container(HOST) == before


def test_the_gate_reverts_a_bad_template(with_files: Site) -> None:
    before, path = release(HOST), with_files.folder / "catalog/chat.jinja"
    assert in_container(AT) == TEMPLATE
    path.write_text(TEMPLATE + "{{ 'new' }}")
    with_files.edit("group_data/sparks.py", DEADLINES,
                    f'{DEADLINES} "environment": {{"FAKE_VLLM_FAULT": "wedge"}},')  # fmt: skip
    run = with_files.run("--yes", "--limit", HOST)
    with_files.edit("group_data/sparks.py", '"environment": {"FAKE_VLLM_FAULT": "wedge"},', "")
    assert run.host(HOST)["services"][0]["outcome"] == "reverted", run.output
    assert (release(HOST), in_container(AT)) == (before, TEMPLATE)
    with_files.deploy("--limit", HOST)
    assert release(HOST) != before
    assert in_container(AT) == TEMPLATE + "{{ 'new' }}"
    with_files.sparkwright("rollback", "inventory/virtual.py", "--limit", HOST, "--yes")
    assert (release(HOST), in_container(AT)) == (before, TEMPLATE)
    path.write_text(TEMPLATE)
    assert with_files.deploy("--limit", HOST).host(HOST)["services"][0]["smoke"]["failures"] == []


def test_a_file_changed_by_hand_is_reported_as_drift_and_repaired(with_files: Site) -> None:
    files = f"/opt/sparkwright/services/qwen36/releases/{release(HOST)}/files"
    inside(HOST, "sh", "-c", f"for file in {files}/*chat.jinja; do echo changed >$file; done")
    status = with_files.sparkwright("status", "inventory/virtual.py", "--limit", HOST, code=1)
    assert "differs: file" in status
    with_files.deploy("--limit", HOST)
    assert in_container(AT) == TEMPLATE
    assert with_files.deploy("--limit", HOST).changed == set()


def test_a_secret_is_only_in_the_container(
    with_files: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/opt/sparkwright/services/qwen36/secrets/tool_token"
    assert in_container("/run/secrets/tool_token") == TOKEN
    assert everywhere(HOST, TOKEN) == [path]
    assert inside(HOST, "stat", "-c", "%a %u", path) == "400 0"
    printed = with_files.sparkwright("plan", "inventory/virtual.py", "--limit", HOST, "--files")
    with_files.sparkwright("render", "inventory/virtual.py", "--limit", HOST, "out")
    assert TOKEN not in printed
    kept = [
        *(with_files.folder / "out").rglob("*"),
        *(with_files.folder / ".sparkwright").rglob("*"),
    ]
    assert not [file for file in kept if file.is_file() and TOKEN.encode() in file.read_bytes()]
    assert TOKEN not in inside(HOST, "docker", "inspect", "sparkwright-qwen36")
    monkeypatch.setenv("TOOL_TOKEN", f"{TOKEN}-changed")
    run = with_files.run("--yes", "--limit", HOST, "-vvv", "--diff", "--debug")
    assert run.code == 0, run.output
    assert TOKEN not in run.output
    assert in_container("/run/secrets/tool_token") == f"{TOKEN}-changed"
    assert answers(with_files, HOST)
