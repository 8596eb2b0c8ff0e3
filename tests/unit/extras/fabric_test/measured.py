"""Answers of a host during a fabric test, for tests of every command's output."""

from sparkwright.extras.fabric_test.fabric_measure import MeasureAnswer, Measurement
from tests.unit.cli.fleet_of_five import LONG

_WRONG = "message too long for enp1s0f1np1"
#: Outputs by the name of the program.
ANSWERS = {
    "fabric_measured": MeasureAnswer(
        (
            Measurement("ping", "enp1s0f1np1", "192.168.177.12", 8972, fault=_WRONG),
            Measurement("all-gather", fault=LONG),
        )
    )
}
