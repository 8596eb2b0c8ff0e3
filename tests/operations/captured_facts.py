"""Facts as pyinfra tests its own: captures in ``facts/<Fact>/*.yaml``, what a host says and what it
means. Importing pyinfra_testing patches the interpreter, so ``test_facts.py`` has this run apart.
"""

from pathlib import Path

import pytest
from pyinfra_testing.facts import make_fact_tests  # type: ignore[import-untyped]

CAPTURES = Path(__file__).parent / "facts"
#: The command is the program itself, compressed: another one with every change of it.
_any_command = pytest.mark.filterwarnings("ignore:No command set for test")

for _folder in sorted(CAPTURES.iterdir()):
    globals()[f"Test{_folder.name}"] = _any_command(
        make_fact_tests("sparkwright", f"facts.{_folder.name}", _folder)
    )
