"""Settings of the bootstrap: its steps and the sources of their packages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

#: Steps in the order of execution: steps that need the user come first.
Step = Literal[
    "sudoers",
    "docker",
    "nvidia-container-toolkit",
    "driver",
    "docker-group",
    "earlyoom",
    "unattended-upgrades",
    "swap",
    "firewall",
    "clocks",
    "watchdog",
]
#: The steps that install packages.
Packaged = Literal["docker", "nvidia-container-toolkit", "driver", "earlyoom"]
PackageName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+.-]{1,100}$")]
_Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$|^/$")]


class PackageSource(BaseModel):
    """Source of a step's packages.

    Attributes:
        packages: names of the packages.
        uri: address of an apt repository, such as a mirror; default: the step's own repository.
        suites: suites of the repository; ``/`` for a repository without suites.
        components: components of the repository.
        key: the signing key: a file on the controller, or an https address.
        fingerprint: the key's fingerprint, 40 hex digits; required for an https address.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    packages: tuple[PackageName, ...] | None = Field(default=None, min_length=1)
    uri: Annotated[str, Field(pattern=r"^https?://[^\s]+$")] | None = None
    suites: tuple[_Word, ...] = ("/",)
    components: tuple[_Word, ...] = ()
    key: str | None = None
    fingerprint: Annotated[str, Field(pattern=r"^[0-9A-Fa-f]{40}$")] | None = None

    @model_validator(mode="after")
    def _is_signed(self) -> PackageSource:
        if self.uri and not self.key:
            raise ValueError("a repository needs 'key': only signed packages are installed")
        if not self.uri and self.key:
            raise ValueError("'key' needs 'uri', the address of the repository")
        if self.key and self.key.startswith("http://"):
            raise ValueError(
                "a key must not be fetched over http: name a file, or an https address"
            )
        if self.key and self.key.startswith("https://") and not self.fingerprint:
            raise ValueError("a key from an https address needs 'fingerprint'")
        return self
