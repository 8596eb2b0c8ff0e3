"""Ten tasks of a user: their text in docs/fleet.md, and the links to it."""

import re

import pytest

from sparkwright.cli import sections
from tests.fleet.first_week import tasks
from tests.tables import Tables
from tests.unit.docs.markdown import ROOT, read
from tests.unit.docs.test_command_lines import command_lines

#: Task -> its command, and a word of the task in the command's line of `sparkwright --help`.
TASKS = Tables(__file__).data
_SECTIONS = dict(re.findall(r"^## ([^\n]*)\n\n(.*?)(?=^## |\Z)", tasks(), re.M | re.S))


def test_the_page_has_the_ten_tasks() -> None:
    assert list(_SECTIONS) == list(TASKS)


@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_at_most_three_commands_and_a_page(task: str) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", _SECTIONS[task], re.S)
    commands = block.splitlines()
    assert 1 <= len(commands) <= 3
    assert not [line for line in commands if re.search(r"&&|;|\|", line)]
    first = next(line[1] for line in command_lines(commands) if line[0] == "sparkwright")
    pages = "".join(
        read(f"docs/{name or 'fleet.md'}").text
        for name in re.findall(r"\]\(([\w-]+\.md|)(?=[#)])", _SECTIONS[task])
    )
    assert f"sparkwright {first}" in pages


def test_the_readme_leads_to_an_answer_with_two_commands_and_three_questions() -> None:
    text = read("README.md").text.partition("## One Spark\n")[2].partition("\n## ")[0]
    first, *_ = re.findall(r"(?:^    \S.*\n)+", text, re.M)
    commands = [" ".join(line.split()[:2]) for line in first.splitlines()]
    assert commands == ["pipx install", "sparkwright up"]
    # tests/fleet/bootstrap/test_up.py answers the same number of questions.
    assert len(re.findall(r"^\d\. ", text, re.M)) == 3


@pytest.mark.parametrize("task", TASKS)
def test_readme_and_help_lead_to_each_task(task: str) -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert any(
        task.lower() in line.lower() for line in lines if "](docs/fleet.md#ten-tasks)" in line
    )
    command, word = TASKS[task]
    helps = {name: line for section in sections().values() for name, line in section.items()}
    assert word in helps[command]
