"""Services handed over, as the command renders them."""

from typing import Any

from sparkwright.extras.handover.formats import handover
from tests.libyaml import safe_load_all
from tests.quadlet import sections
from tests.unit.builders import plan, resolution

HERETIC = "qwen36-35b-a3b-heretic-dflash"
#: Values that would be something else in YAML, in a unit, on systemd's command line or for the
#: kubelet.
HOSTILE = (
    'quo"te', "single'", "new\nline", "x\n[Service]\nExecStart=/bin/evil", "\r\nPrivileged=true",
    "$HOME ${X} $(VLLM_API_KEY) $$", "%n %H %%", "back\\slash\\", "\\x41", "a; b", "#c", "- a: b",
    "{{ x }}", "*x", "&x", "!!python/object:os.system x", "1e3", "yes", "y", "null", "0x1f", "1_0",
    "2026-01-01", "~", " blank ", "\t", "\x1b[2J", "\x85", "\u2028", "ünïcode",
    "---\nkind: Pod", "-x",
)  # fmt: skip


def files(form: str, host: str = "spark-1", **settings: Any) -> dict[str, Any]:
    """The files of one service of a host."""
    planned = plan({"chat": {"recipe": HERETIC, **settings}}, host=host)
    return handover(form, planned, planned.services[0], resolution(planned)).files


def manifests(host: str = "spark-1", **settings: Any) -> dict[str, Any]:
    """Kind -> manifest."""
    (text,) = files("kubernetes", host, **settings).values()
    return {item["kind"]: item for item in safe_load_all(text)}


def container(host: str = "spark-1", **settings: Any) -> dict[str, Any]:
    """The container of the Deployment."""
    pod = manifests(host, **settings)["Deployment"]["spec"]["template"]["spec"]
    (result,) = pod["containers"]
    return {**result, "pod": pod}


def quadlet(**settings: Any) -> dict[str, dict[str, list[str]]]:
    """Section -> key -> its values, of the .container file."""
    text = files("quadlet", **settings)["etc/containers/systemd/llm-chat.container"]
    result: dict[str, dict[str, list[str]]] = {}
    for section, lines in sections(text).items():
        for key, value in lines:
            result.setdefault(section, {}).setdefault(key, []).append(value)
    return result
