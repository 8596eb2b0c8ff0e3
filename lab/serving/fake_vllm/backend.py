"""A model for the routes: its served names, its limits, and counted generations."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from .developer import Sleep
from .errors import ApiError
from .faults import Faults
from .generation import Engine, Generation
from .metrics import Metrics
from .rank_link import Ranks
from .server_settings import Settings


class Backend:
    """Everything that a route needs to answer a request."""

    def __init__(self, settings: Settings, version: str, faults: Faults, ranks: Ranks) -> None:
        self.settings = settings
        self.version = version
        self.faults = faults
        self.metrics = Metrics(settings, version)
        self.load = 0
        self.sleep = Sleep()
        self._engine = Engine(settings, self.metrics, faults, ranks)

    @property
    def names(self) -> list[str]:
        """The served aliases, in the order of the command line."""
        return self.settings.names[:1] if self.faults.no_alias else self.settings.names

    def model_of(self, body: dict[str, Any]) -> str:
        """The alias in a request, by default the first alias; ApiError for an unknown alias."""
        name = body.get("model") or self.names[0]
        if name in self.names:
            return str(name)
        aliases = f" Valid aliases: {', '.join(self.names)}." if self.version == "0.32.0" else ""
        raise ApiError(
            404, "NotFoundError", f"The model `{name}` does not exist.{aliases}", "model"
        )

    async def run(self, generation: Generation) -> AsyncGenerator[int, None]:
        """Run a generation, which /load counts; yield the number of tokens of each step."""
        self.sleep.check()
        self.load += 1
        try:
            async with contextlib.aclosing(self._engine.run(generation)) as steps:
                async for step in steps:
                    yield step
        finally:
            self.load -= 1
