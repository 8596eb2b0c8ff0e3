"""What every catalog entry is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Scalar = bool | int | float | str
#: A vLLM argument's value: a flag (bool), one value, several values, or a JSON object.
ArgumentValue = bool | int | float | str | list[Scalar] | dict[str, Scalar | None]


class Data(BaseModel):
    """Read-only, and nothing unknown in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
