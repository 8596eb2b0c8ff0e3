"""Types that all catalog entries share."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
#: A size in GiB.
Gib = Annotated[float, Field(gt=0)]
#: Statements about an entry as a whole.
Status = Literal["recommended", "works", "expected", "superseded", "fails", "unproven"]
#: Default source of an entry in a user's catalog.
OWN = "your own catalog"
Scalar = bool | int | float | str
#: A vLLM argument's value: a flag (bool), one value, several values, or a JSON object.
ArgumentValue = bool | int | float | str | list[Scalar] | dict[str, Scalar | None]
#: A variable of a container's environment. Docker refuses an empty name and a name with "=".
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]*$")]
#: An argument of ``vllm serve``, with underscores or dashes.
ArgumentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_-]*[A-Za-z][A-Za-z0-9_.-]*$")]
#: Names that clients request. vLLM would read a name that begins with a dash as an argument.
ServedName = Annotated[str, StringConstraints(pattern=r"^[^-\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$")]


def repository(name: str) -> str:
    """The name of a repository. Raises ValueError for a name that no hub has."""
    if ".." in name or "--" in name:
        raise ValueError("a repository's name must not contain '..' or '--'")
    return name


REPOSITORY = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,95}/[A-Za-z0-9_][A-Za-z0-9._-]{0,95}"
#: A Hugging Face repository: it becomes part of addresses, paths and commands.
Repository = Annotated[
    str,
    StringConstraints(pattern=rf"^{REPOSITORY}$"),
    AfterValidator(repository),
]
#: A branch, a tag or a commit, which becomes part of addresses.
Revision = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*$"),
]


def _straight(path: str) -> str:
    if {".", ".."} & set(path.split("/")):
        raise ValueError("a path must not contain . or .. as a part")
    return path


#: An absolute path without "." and "..".
Straight = AfterValidator(_straight)


class Data(BaseModel):
    """A read-only model without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)
