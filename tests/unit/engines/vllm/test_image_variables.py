"""Images that take their settings from variables: plan and rules show the running settings."""

from typing import Any

import pytest

from sparkwright.findings.user_error import UserError
from sparkwright.plan.plan import ServicePlan
from sparkwright.plan.service import container_command
from tests.tables import Tables
from tests.unit.builders import plan

cases = Tables(__file__)


def _service(**settings: Any) -> ServicePlan:
    (service,) = plan({"s": {"recipe": "qwen35-27b-dflash", **settings}}).services
    return service


def test_a_variable_becomes_its_argument() -> None:
    variables = cases.data["variables"]
    service = _service(environment=variables, arguments={"max_num_seqs": 4})
    arguments = dict(service.arguments)
    assert arguments["max_num_seqs"] == 8  # the variable still overrides the argument
    assert arguments["gpu_memory_utilization"] == 0.7
    assert arguments["attention_backend"] == "TRITON_ATTN"
    assert isinstance(arguments["speculative_config"], dict)
    assert arguments["speculative_config"]["num_speculative_tokens"] == 10
    assert dict(service.environment) == {"NCCL_DEBUG": "INFO"}
    assert service.origins["argument.max_num_seqs"] == "group_data/sparks.py: services.s"
    assert variables.items() <= container_command(service).environment.items()


def test_the_container_gets_the_same_settings_as_before() -> None:
    """A fleet that set variables is not switched by an upgrade."""
    as_variable = _service(environment={"MAX_NUM_SEQS": "8"})
    as_argument = _service(arguments={"max_num_seqs": 8})
    assert container_command(as_variable).environment == container_command(as_argument).environment


def test_an_empty_variable_keeps_the_argument() -> None:
    assert dict(_service(environment={"MAX_NUM_SEQS": ""}).arguments)["max_num_seqs"] == 16


@cases("name", "value", "remedy")
def test_a_variable_with_its_own_setting_is_refused(name: str, value: str, remedy: str) -> None:
    with pytest.raises(UserError) as raised:
        _service(environment={name: value})
    (problem,) = raised.value.findings
    assert problem.subject.place == f"group_data/sparks.py: services.s.environment.{name}"
    assert problem.remedy.startswith(remedy)


def test_an_image_that_takes_arguments_keeps_its_variables() -> None:
    recipe = "qwen36-35b-a3b-heretic-dflash"
    (service,) = plan({"s": {"recipe": recipe, "environment": {"MAX_NUM_SEQS": "8"}}}).services
    assert dict(service.environment)["MAX_NUM_SEQS"] == "8"
    assert dict(service.arguments)["max_num_seqs"] == 64
