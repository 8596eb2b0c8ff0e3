"""Files, secrets and patches of a service, in addition to its image and weights.

Patches change an image: the recipe's image is the base, and a derived image serves.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from sparkwright.catalog import containers, data
from sparkwright.text.shipped_yaml import beside

#: Path of a file in the folder of the recipe's own file, or below that folder.
Beside = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._+-]*(/[A-Za-z0-9_][A-Za-z0-9._+-]*)*$"),
]


def _of_the_image(path: str) -> str:
    if path.split("/")[1] in ("proc", "sys", "dev", "run", "tmp"):
        raise ValueError(f"{path} does not belong to the image; choose another folder")
    return path


#: Path of a file or folder in an image.
ImagePath = Annotated[containers.Place, AfterValidator(_of_the_image)]
_Module = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")]
_Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class CopiedFile(data.Data):
    """A file that is copied into an image.

    Attributes:
        at: absolute path in the image.
        source: a file in the folder of the recipe's own file, or below that folder.
    """

    at: ImagePath
    source: Beside


class Promises(data.Data):
    """Checks of the derived image on a host, without network, before a service may run it.

    Attributes:
        imports: Python modules that must be importable in the image, without a GPU.
        versions: Python package -> its version.
        sha256: path in the image -> sha256 of the file, 64 hex digits.
    """

    imports: tuple[_Module, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    sha256: dict[containers.Place, _Sha256] = Field(default_factory=dict)


class Patch(data.Data):
    """A step of a derived image: ``files``, ``patch`` or ``promises``.

    Attributes:
        files: files that are copied into the image.
        patch: a unified diff, in the folder of the recipe's own file or below it.
        into: the image's folder with the files that the diff changes.
        strip: number of leading folders of the diff's paths that are not below ``into``.
        optional: whether the image may lack the file of the diff. The diff is applied as a whole or
            not at all.
        reverse: whether the diff is reversed (``patch -R``).
        promises: required content of the image after the steps.
    """

    files: tuple[CopiedFile, ...] = ()
    patch: Beside | None = None
    into: ImagePath | None = None
    strip: int = Field(default=1, ge=0, le=9)
    optional: bool = False
    reverse: bool = False
    promises: Promises | None = None

    @model_validator(mode="before")
    @classmethod
    def _installs_nothing(cls, written: Any) -> Any:
        if isinstance(written, dict) and {"apt", "pip"} & written.keys():
            raise ValueError(
                "a step must not install packages, which install further packages and run scripts; "
                "build an image with these packages, and name the image in your catalog"
            )
        return written

    @model_validator(mode="after")
    def _one_step(self) -> Patch:
        steps = (self.files, self.patch, self.promises)
        if sum(map(bool, steps)) != 1 or bool(self.patch) is not bool(self.into):
            raise ValueError(
                "a step is 'files', or 'patch' with 'into', or 'promises'; write all other "
                "keys as separate steps"
            )
        return self


_DATA: dict[str, Any] = beside(__file__, "file_entries.yaml")


def overlap(path: str, other: str) -> bool:
    """Return whether two paths are equal, or one path is a folder of the other."""
    return f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")


def is_code(names: Iterable[str], content: bytes | None = None) -> bool:
    """Return whether the engine may run a file: true for every file except text files with the
    extension of a data format.

    Args:
        content: the file's content, if it is known.
    """
    if not all(name.endswith(tuple(_DATA["data"])) for name in names):
        return True
    try:
        text = (content or b"").decode()
    except UnicodeDecodeError:
        return True
    return text.startswith(("#!", "\x7fELF")) or "\0" in text


def _not_the_systems(path: str) -> str:
    folders = [path, *map(str, PurePosixPath(path).parents)]
    for folder in _DATA["system"]:
        if overlap(path, folder) or any(fnmatchcase(each, folder) for each in folders):
            raise ValueError(
                f"{folder} belongs to the container's system; choose another path, such as "
                f"/opt/sparkwright/files/{path.rpartition('/')[2]}"
            )
    return path


#: Absolute path of a file in a container.
FilePath = Annotated[containers.Place, AfterValidator(_not_the_systems)]
#: Name of a secret: a file name, and a key of a Kubernetes Secret.
SecretName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]


class File(data.Data):
    """A file that a container reads besides its image and weights.

    Attributes:
        at: absolute path in the container, where the file is mounted read-only.
        source: a file in the folder of the recipe's own file, or below that folder; for a service
            in the settings, in one of the site's catalog folders.
        repository: a Hugging Face repository with the file, instead of ``source``.
        revision: commit, branch or tag of ``repository``; the lock pins the commit.
        file: path of the file in ``repository``. The lock keeps the file's text.
        sha256: hash of the file's content, 64 hex digits. Other content is refused.
    """

    at: FilePath
    source: Beside | None = None
    repository: data.Repository | None = None
    revision: data.Revision | None = None
    file: Beside | None = None
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None

    @model_validator(mode="after")
    def _from_one_place(self) -> File:
        hub = (self.repository, self.revision, self.file)
        if (self.source is None) is not (None not in hub) or (self.source and any(hub)):
            raise ValueError(
                "a file has either 'source', or 'repository', 'revision' and 'file'; "
                "write one of the two"
            )
        return self

    @property
    def name(self) -> str:
        """Name of the source: a path, or ``repository@revision/file``."""
        return self.source or f"{self.repository}@{self.revision}/{self.file}"

    @property
    def is_template(self) -> bool:
        """Return whether the file's name marks a Jinja template."""
        return any(name.endswith(tuple(_DATA["templates"])) for name in (self.at, self.name))
