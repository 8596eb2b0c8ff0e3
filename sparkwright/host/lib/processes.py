"""Running commands: each with a time limit, none with an exception."""

from __future__ import annotations

import shutil
import subprocess

from sparkwright.host.contracts.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes 3 ms to import
    from collections.abc import Mapping


class Running:
    """A command that runs while others do.

    Args:
        timeout: seconds that its outcome is waited for; None waits for ever.
        environment: in place of this process's own.
    """

    def __init__(
        self,
        *words: str,
        timeout: float | None = 10,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._words, self._timeout = words, timeout
        self._process: subprocess.Popen[bytes] | None = None
        if shutil.which(words[0]) is not None:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
            )

    def outcome(self) -> Outcome:
        """How it ended."""
        if self._process is None:
            return Outcome(None, err=f"{self._words[0]} is not installed", found=False)
        try:
            said = self._process.communicate(timeout=self._timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()  # not waited for: what hangs in the kernel does not even die
            return Outcome(None, err=f"{self._words[0]}: no answer within {self._timeout:.0f} s")
        out, err = (text.decode(errors="replace") for text in said)
        return Outcome(self._process.returncode, out, err)


def run(
    *words: str,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Outcome:
    """A command's outcome. By default it may take as long as it needs."""
    return Running(*words, timeout=timeout, environment=environment).outcome()
