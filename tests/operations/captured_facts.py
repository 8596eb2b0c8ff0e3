"""Facts in the form of pyinfra's own tests: captures in ``facts/<Fact>/*.yaml``, a host's output
and its meaning. Importing pyinfra_testing patches the interpreter, so ``test_facts.py`` runs this
module in a separate process.
"""

from pathlib import Path

import pytest
from pyinfra_testing.facts import make_fact_tests  # type: ignore[import-untyped]

#: The command is the program itself, compressed: it changes with the program.
_any_command = pytest.mark.filterwarnings("ignore:No command set for test")

for _folder in sorted((Path(__file__).parent / "facts").iterdir()):
    globals()[f"Test{_folder.name}"] = _any_command(
        make_fact_tests("sparkwright", f"facts.{_folder.name}", _folder)
    )
