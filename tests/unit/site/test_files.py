"""Files and secrets of services: checked in the plan, mounted, and printed in no other place."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sparkwright.catalog.file_entries import File
from sparkwright.cli import main
from sparkwright.config.inventory import HostInput
from sparkwright.config.keys import keys_of
from sparkwright.config.parse import parse_settings
from sparkwright.documents.text_files import write
from sparkwright.findings.user_error import UserError
from sparkwright.host.observe import FileState, ServiceState
from sparkwright.host.service import Service
from sparkwright.operations.services import to_desired
from sparkwright.plan import files
from sparkwright.plan.changes import changes
from sparkwright.plan.files import PlannedFile
from sparkwright.plan.missing import digest
from sparkwright.plan.plan import HostPlan
from sparkwright.resolve.hub import ask_hub
from sparkwright.resolve.lock import from_resolution, render_lock, to_resolution
from sparkwright.resolve.queries import Answer
from sparkwright.site.desired import rendered, secrets_of
from sparkwright.site.fleet import PlannedHost, plan_fleet
from sparkwright.site.resolution import site_problems
from tests.tables import Tables
from tests.unit.builders import ROOT, SPARK, catalog, origin, probe, resolution

cases = Tables(__file__)

AT = "/opt/sparkwright/files/chat.jinja"
GOOD = (
    "{%- for m in messages %}\n<{{ m.role }}>{{ m.content }}\n{%- endfor %}\n{{ tools | tojson }}"
)
TOKEN = "the-token-of-a-tool-server"
ENDLESS = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}" * 9


def plan(template: str = GOOD, *, folder: str = "catalog", **service: Any) -> HostPlan:
    """A Spark whose service has a chat template; its text is written beside the site's catalog."""
    write(Path(folder, "chat.jinja"), template)
    own = {"files": [{"at": AT, "source": "chat.jinja"}], "arguments": {"chat_template": AT}}
    own |= service
    data = {"services": {"qwen36": {**SPARK["qwen36"], **own}}}
    return plan_fleet([HostInput("spark-1", data, origin)]).or_raise()["spark-1"].plan


def own_recipe(keys: str) -> str:
    """Write a recipe with further keys to the site's catalog. Returns its name."""
    shipped, name = SPARK["qwen36"]["recipe"], "recipe-of-the-site"
    text = (ROOT / f"catalog/recipes/{shipped}.yaml").read_text()
    write(
        Path("catalog/recipes/own.yaml"), text.replace(f"name: {shipped}", f"name: {name}\n{keys}")
    )
    return name


def render(planned: HostPlan) -> Service:
    """Render a service of the site."""
    (service,) = rendered(planned, resolution(planned))
    return service


@pytest.fixture(autouse=True)
def _site(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_TOKEN", TOKEN)
    ask_hub.cache_clear()


@cases("template", "message")
def test_a_bad_template_is_reported_with_file_line_and_reason(template: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        plan(template)
    assert "catalog/chat.jinja" in str(raised.value)
    assert message in str(raised.value)


def test_an_endless_template_is_reported(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit counts processor time, and is shorter in this test."""
    trial = files._TRIAL.read_text()
    assert trial.count("= 5,") == 1
    write(here / "trial.py", trial.replace("= 5,", "= 1,"))
    monkeypatch.setattr(files, "_TRIAL", here / "trial.py")
    with pytest.raises(UserError, match="the template can't be rendered within 5 seconds"):
        plan(ENDLESS)


@cases("template", more=[GOOD])
def test_a_template_that_the_engine_accepts_passes(template: str) -> None:
    assert plan(template).services[0].files[0].text == template


def test_other_templates_are_parsed_and_score_templates_get_scored_texts() -> None:
    assert plan("{{ date.year }}", arguments={}).services[0].files
    with pytest.raises(UserError, match="unexpected"):
        plan("{{ date.year }", arguments={})
    score = "{{ (messages | selectattr('role', 'eq', 'query') | first).content }}|"
    score += "{{ (messages | selectattr('role', 'eq', 'document') | first).content }}"
    with pytest.raises(UserError, match="No first item"):
        plan(score)
    assert plan(score, arguments={"chat_template": AT, "runner": "pooling"}).services[0].files


def test_a_template_must_be_utf_8() -> None:
    Path("catalog").mkdir()
    Path("catalog/latin.jinja").write_bytes("{{ messages[-1].content }}\xe9".encode("latin-1"))
    with pytest.raises(UserError, match=r"latin.jinja(?s:.)*byte 26 is not UTF-8"):
        plan(files=[{"at": AT, "source": "latin.jinja"}])


@cases("listed", "message")
def test_a_file_with_a_forbidden_path_or_source_is_refused(
    listed: list[dict[str, Any]], message: str
) -> None:
    write(Path("catalog/large.py"), b"#" * 1_000_001)
    write(Path("elsewhere"), "secret of the machine")
    Path("catalog/link.jinja").symlink_to(Path("elsewhere").absolute())
    write(Path("catalog/recipes/notes.txt"), "notes")
    recipe = own_recipe("files: [{at: /opt/recipe, source: notes.txt}]")
    listed = [{**file, "at": file["at"].replace("/models/x", "/models/qwen36")} for file in listed]
    with pytest.raises(UserError) as raised:
        plan(recipe=recipe, files=listed)
    assert message in str(raised.value)


@pytest.mark.parametrize("extends", ["true", "recipe-of-the-site"])
def test_sources_lie_beside_the_entry_that_names_them(extends: str) -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"
    for folder, text in (("catalog/recipes", "of the base"), ("later", "of the extension")):
        for name in ("notes.txt", "more.txt"):
            write(Path(folder, name), text)
    write(Path("catalog/recipes/fix.patch"), diff)
    name = own_recipe(
        "files: [{at: /opt/notes.txt, source: notes.txt}]\n"
        "patches: [{patch: fix.patch, into: /usr/lib/x}]"
    )
    name = name if extends == "true" else "extension"
    entry = f"kind: recipe\nname: {name}\nextends: {extends}\nboot_seconds: 1234\n"
    write(Path("later/recipe.yaml"), entry)
    data = {"catalog_directories": ["later"], "services": {"qwen36": {"recipe": name}}}
    host = HostInput("spark-1", data, origin)
    (service,) = plan_fleet([host]).or_raise()["spark-1"].plan.services
    assert (service.boot_seconds, service.files[0].text) == (1234, "of the base")
    assert service.image.steps
    assert dict(service.image.steps.files).popitem()[1] == diff.encode()
    write(Path("later/recipe.yaml"), f"{entry}files: [{{at: /opt/x.txt, source: more.txt}}]\n")
    (service,) = plan_fleet([host]).or_raise()["spark-1"].plan.services
    assert [file.text for file in service.files] == ["of the extension"]


def _state(service: Service, **other: Any) -> ServiceState:
    """The service on its host, as desired."""
    digests = {name: digest(text) for name, text in service.contents.items()}
    return replace(ServiceState(service.release, files=digests), **other)


def test_a_file_changed_by_hand_and_a_new_secret_are_written() -> None:
    planned = plan(secrets=[{"name": "tool_token", "variable": "TOOL_TOKEN"}])
    service, keys = render(planned), keys_of("spark-1", planned.settings, {"TOOL_TOKEN": TOKEN})
    secrets = secrets_of(planned, keys)
    path = f"{service.home}/secrets/tool_token"
    assert secrets[path].value == TOKEN
    kept, open_to_all = (FileState(digest(TOKEN), mode) for mode in (0o400, 0o444))
    for there, parts in [
        (_state(service), ["secret tool_token"]),
        (_state(service, tokens={"tool_token": kept}), []),
        (_state(service, tokens={"tool_token": open_to_all}), ["secret tool_token"]),
        (_state(service, files={}, tokens={"tool_token": kept}),
         [f"file {name}" for name in service.contents]),
    ]:  # fmt: skip
        observed = probe()
        there = replace(there, compose=digest(service.compose), unit=digest(service.unit_text))
        observed = replace(observed, services={"qwen36": there})
        pending = changes(service, secrets, observed)
        assert [item for item in pending if item.startswith(("file", "secret"))] == parts
    (switch,) = to_desired([(service, ["file"])], secrets, observed)
    assert switch.files[path] == (TOKEN, 0o400)
    assert service.mounted.items() <= switch.files.items()


def test_a_secret_is_only_in_its_file(capfd: pytest.CaptureFixture[str]) -> None:
    secret = {"name": "tool_token", "variable": "TOOL_TOKEN"}
    planned = plan(secrets=[secret])
    service = render(planned)
    keys = keys_of("spark-1", planned.settings, {"TOOL_TOKEN": TOKEN})
    assert "/run/secrets/tool_token" in service.compose
    texts = [service.compose, service.unit_text, service.record, repr(planned), repr(keys)]
    assert not [text for text in texts if TOKEN in text]


def test_missing_secrets_are_reported() -> None:
    Path("open").write_text(TOKEN)
    Path("open").chmod(0o644)
    sources: list[tuple[dict[str, Any], str, list[bool]]] = [
        ({"variable": "UNSET"}, "not set", [True]),
        ({"file": "open"}, "other users can read", [True]),
        ({"file": "absent"}, "No such file", [True]),
        ({"command": ["true"]}, "prints nothing", []),
        ({"command": [TOKEN]}, "can't be started|not on this machine", [True]),
        ({"command": ["sh", "-c", f"exit 3 # {TOKEN}"]}, "exit code 3|ended with 3", []),
    ]  # fmt: skip
    for source, message, expected in sources:
        planned = plan(secrets=[{"name": "tool_token", **source}])
        with pytest.raises(UserError, match=message) as raised:
            keys_of("spark-1", planned.settings, {})
        assert TOKEN not in str(raised.value)
        problems = site_problems({"spark-1": PlannedHost(planned, catalog())}, {})
        assert [bool(re.search(message, problem.observed)) for problem in problems] == expected
        assert {problem.subject.host for problem in problems} <= {"spark-1"}
        where = " ".join(str(problem.subject) for problem in problems)
        assert not problems or "group_data/sparks.py: services.qwen36.secrets.tool_token" in where


def test_a_command_of_a_secret_runs_only_for_a_deploy() -> None:
    planned = plan(secrets=[{"name": "tool_token", "command": ["touch", "ran"]}])
    keys = keys_of("spark-1", planned.settings, {}, commands=False)
    service, state = render(planned), probe()
    assert not [
        item for item in changes(service, secrets_of(planned, keys), state) if "tool" in item
    ]
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    "service",
    [
        {"secrets": {"tok": TOKEN}}, {"secrets": TOKEN}, {"secrets": [TOKEN]},
        {"secrets": [{"name": TOKEN.upper(), "file": "x"}]},
        {"secrets": [{"name": "tok", "variable": f"${TOKEN}"}]},
        {"secrets": [{"name": "tok", "command": TOKEN}]},
        {"secrets": [{"name": "tok", "command": ["echo", TOKEN, 5]}]},
        {"secrets": [{"name": "tok", "command": ["echo", TOKEN], "file": TOKEN}]},
        {"secrets": [{"name": "tok", "value": TOKEN}]},
        {"secrets": [{"name": "tok", "variable": "X"}, TOKEN], "model": "a/b"},
        [{"secrets": [TOKEN]}],
    ],
)  # fmt: skip
def test_no_message_shows_values_below_secrets(service: Any) -> None:
    for value in (
        service,
        {"recipe": "r", "model": "o/n", **service} if isinstance(service, dict) else [],
    ):
        with pytest.raises(UserError) as raised:
            parse_settings("spark-1", {"services": {"s": value}}, origin)
        text = str(raised.value)
        assert TOKEN not in text
        assert TOKEN.upper() not in text
        assert "services.s" in text


def test_a_repositorys_file_is_fetched_once_and_then_read_from_the_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from email.message import Message

    urls: list[str] = []

    def get(_: object, url: str, *__: object) -> Answer:
        urls.append(url)
        return Answer(200, Message(), GOOD.encode())

    monkeypatch.setattr("sparkwright.resolve.hub.Server.get", get)
    commit = "c" * 40
    listed = [{"at": AT, "repository": "org/name", "revision": commit, "file": "a/chat.jinja"}]
    planned = plan(files=listed)
    assert urls == [f"https://huggingface.co/org/name/resolve/{commit}/a/chat.jinja"]
    named = [planned.references]
    lock = from_resolution(named, resolution(planned), None)
    Path("fleet.lock").write_text(render_lock(lock))
    ask_hub.cache_clear()
    assert plan(files=listed).services[0].files[0].text == GOOD
    assert len(urls) == 1
    with pytest.raises(UserError, match=r"chat\.jinja is not locked"):
        to_resolution(named, lock.model_copy(update={"files": None}), "fleet.lock")
    Path("fleet.lock").write_text(render_lock(lock).replace("messages", "message"))
    with pytest.raises(UserError, match="does not match its sha256"):
        plan(files=listed)


def test_the_plan_names_code_and_shows_files_whole() -> None:
    write(Path("catalog/parser.py"), "print('of the parser')\n")
    listed = [{"at": AT, "source": "chat.jinja"}, {"at": "/opt/parser.py", "source": "parser.py"}]
    secret = {"name": "tool_token", "variable": "TOOL_TOKEN"}
    plan(files=listed, secrets=[secret])
    services = {"qwen36": {**SPARK["qwen36"], "files": listed, "secrets": [secret],
                           "adapters": [{"name": "my-style", "model": "org/my-style"}],
                           "kv_offload": {"gib": 64, "disk": "/mnt/fast"}}}  # fmt: skip
    write(Path("inventory.py"), f"boxes = [('spark-1', {{'services': {services!r}}})]\n")
    plain = CliRunner().invoke(main, ["plan", "inventory.py"]).output
    whole = CliRunner().invoke(main, ["plan", "inventory.py", "--files"]).output
    assert "/opt/parser.py  (catalog/parser.py), 23 bytes" in plain
    assert plain.count("CODE that the engine may run") == 1
    assert "/run/secrets/tool_token" in plain
    assert "adapter my-style of org/my-style" in plain
    assert "64 GiB for each kept release at /mnt/fast" in plain
    assert "print('of the parser')" not in plain
    assert "print('of the parser')" in whole
    assert GOOD in whole
    assert TOKEN not in plain + whole


@cases("name", "text", "code")
def test_files_are_code_unless_they_are_text_with_a_data_ending(
    name: str, text: str, code: bool
) -> None:
    content = text.encode("latin-1")
    assert PlannedFile(File(at="/opt/x.txt", source=name), name, content).is_code is code
    assert PlannedFile(File(at=f"/opt/{name}", source="x.txt"), "x.txt", content).is_code is code


def test_files_with_equal_content_hide_no_code_in_the_plan() -> None:
    """Files with equal content share one block. Patches list their contents and their targets."""
    for name in ("a.py", "a.txt", "recipes/a.py", "recipes/notes.txt"):
        write(Path("catalog", name), "notes" if "notes" in name else "print('twin')\n")
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"
    write(Path("catalog/recipes/fix.patch"), diff)
    steps = (
        "{files: [{at: /opt/notes.txt, source: notes.txt}]}, "
        "{files: [{at: /opt/c.txt, source: a.py}]}, {patch: fix.patch, into: /usr/lib}"
    )
    listed = [{"at": f"/opt/{name}", "source": name} for name in ("a.py", "a.txt")]
    recipe = own_recipe(f"patches: [{steps}]")
    services = {"qwen36": {"recipe": recipe, "files": listed}}
    write(Path("inventory.py"), f"boxes = [('spark-1', {{'services': {services!r}}})]\n")
    printed = CliRunner().invoke(main, ["plan", "inventory.py", "--files"]).output
    titles = [
        line for line in printed.splitlines() if ", sha256 " in line and "file   " not in line
    ]
    assert printed.count("print('twin')") == 1
    (twin,) = [title for title in titles if "/opt/a.txt" in title]
    for part in ("/opt/a.py (catalog/a.py)", f"step 2 of recipe {recipe}: /opt/c.txt", "CODE"):
        assert part in twin
    assert [title.partition(", sha256")[0] for title in titles if title != twin] == [
        f"step 1 of recipe {recipe}: /opt/notes.txt (data)",
        f"step 3 of recipe {recipe}: fix.patch into /usr/lib (CODE)",
    ]
    derived = [line for line in printed.splitlines() if "derived on the host" in line]
    assert ["CODE" in line for line in derived] == [False, True, True]


def test_several_commands_write_one_file_at_once(tmp_path: Path) -> None:
    file, texts = tmp_path / "cache/plan.json", [str(number) * 99 for number in range(8)]

    def repeat(text: str) -> None:
        for _ in range(20):
            write(file, text)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(repeat, texts))
    assert file.read_text() in texts
    assert [path.name for path in file.parent.iterdir()] == [file.name]
