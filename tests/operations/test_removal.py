"""Removal names the remaining parts."""

from sparkwright.host.bootstrap.prepare import RECORD
from sparkwright.host.observe import ObservationRequest
from sparkwright.host.removal import RemovalAnswer
from sparkwright.operations import removal
from tests.operations.harness import fake, run
from tests.unit.builders import probe

ROOT = "/opt/sparkwright"
USAGE = "/var/lib/sparkwright-models"
ASKED = ObservationRequest(
    directories=("/opt/models", ROOT, USAGE, f"{ROOT}/services/qwen36", f"{ROOT}/services/gone"),
    files=(RECORD, "/var/lib/sparkwright/fabric/devices"),
)


def test_the_usage_database_is_named_as_the_only_remainder() -> None:
    answers: list[RemovalAnswer] = []
    host = fake(probe(directories={USAGE: {"mode": 0o755, "uid": 0}}), ASKED)
    run(host, removal.removed, answered=answers.append, execute=True)
    assert answers == [RemovalAnswer((), (f"{USAGE}/usage.db: the use of API keys",))]
