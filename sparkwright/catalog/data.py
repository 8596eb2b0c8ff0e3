"""What every catalog entry is made of."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Scalar = bool | int | float | str
#: A vLLM argument's value: a flag (bool), one value, several values, or a JSON object.
ArgumentValue = bool | int | float | str | list[Scalar] | dict[str, Scalar | None]
#: A variable of a container's environment; empty, or with "=" in it, Docker refuses it.
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
#: An argument of ``vllm serve``, with underscores or dashes.
ArgumentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_-]*[A-Za-z][A-Za-z0-9_.-]*$")]
#: What clients ask for. vLLM would read one that begins with a dash as an argument of its own.
ServedName = Annotated[str, StringConstraints(pattern=r"^[^-\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$")]


def _straight(path: str) -> str:
    if {".", ".."} & set(path.split("/")):
        raise ValueError("a path is written without . and .. in it, so that it says where it leads")
    return path


#: For absolute paths: they lead where they say.
Straight = AfterValidator(_straight)


class Data(BaseModel):
    """Read-only, and nothing unknown in it."""

    model_config = ConfigDict(extra="forbid", frozen=True)
