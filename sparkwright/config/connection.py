"""pyinfra's own keys of a host: how it is reached, and how often an operation is tried.

pyinfra takes them as they are: a port of 70000 connects to 4464, and a negative number of retries
runs no operation at all.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from sparkwright.config.values import Address, ControllerFile, Port, Seconds, Whole
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake
from sparkwright.findings.validation import problems_of

_Retries = Annotated[Whole, Field(ge=0, le=100)]
_Words = Annotated[str, StringConstraints(min_length=1, max_length=1024)]


class Connection(BaseModel):
    """Keys of a host's data that pyinfra reads. None leaves pyinfra's default."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    ssh_hostname: Address | None = None
    ssh_port: Port | None = None
    ssh_user: _Words | None = None
    ssh_key: _Words | None = None
    ssh_allow_agent: bool | None = None
    ssh_look_for_keys: bool | None = None
    ssh_forward_agent: bool | None = None
    ssh_config_file: ControllerFile | None = None
    ssh_known_hosts_file: ControllerFile | None = None
    ssh_strict_host_key_checking: Literal["yes", "no", "off", "accept-new", "ask"] | None = None
    ssh_paramiko_connect_kwargs: dict[str, Any] | None = None
    ssh_connect_retries: _Retries | None = None
    ssh_connect_retry_min_delay: Seconds | None = None
    ssh_connect_retry_max_delay: Seconds | None = None
    ssh_file_transfer_protocol: Literal["sftp", "scp"] | None = None
    retries: _Retries | None = Field(default=None, alias="_retries")
    retry_delay: Seconds | None = Field(default=None, alias="_retry_delay")
    timeout: Seconds | None = Field(default=None, alias="_timeout")


#: Judged without being shown.
_SECRET = ("ssh_password", "ssh_key_password")
CONNECTION_KEYS = (
    *(name for name in Connection.model_fields if name.startswith("ssh_")),
    *_SECRET,
)


def connection_problems(
    host: str, data: Mapping[str, Any], origin: Callable[[str], str]
) -> Iterator[Finding]:
    """Faults in a host's keys for pyinfra."""
    try:
        Connection.model_validate(dict(data))
    except ValidationError as error:
        for problem in problems_of(error, ""):
            key = problem.subject.key or ""
            where = f"{origin(key.partition('.')[0])}: {key}"
            yield mistake(where, problem.observed, problem.remedy, host)
    for secret in _SECRET:
        if not isinstance(data.get(secret), str | None):
            where = f"{origin(secret)}: {secret}"
            yield mistake(where, "this is no text", "write it in quotes", host)
