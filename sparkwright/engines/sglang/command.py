"""Command line and environment of a container that serves with SGLang."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from sparkwright.catalog import ArgumentValue
from sparkwright.engines.command_line import argument_words, media_words
from sparkwright.engines.engine import Command, Launch, Rank
from sparkwright.engines.sglang.data import DATA
from sparkwright.findings.user_error import Fault

#: What listens on a Unix socket and asks for the key, before SGLang.
LAUNCH = Path(__file__).with_name("launch.py").read_text(encoding="utf-8")
#: The first version with a list of media domains.
HAS_DOMAINS = (0, 5, 18)


def command(launch: Launch) -> Command:
    """``-c PROGRAM --uds ... --model-path ...`` and the recipe's arguments, after ``python3``.

    Boot caches come first in the environment: a recipe's own variable goes before them.
    """
    environment = launch.cache_variables(DATA["caches"])
    # /health would compute a token each time; the proxy's own check does, when nobody asks.
    environment["SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION"] = "0"
    arguments = ["-c", LAUNCH, *(["--uds", launch.socket] if launch.socket else [])]
    arguments += ["--host", launch.host, "--port", str(launch.port), "--model-path", launch.model]
    arguments += ["--served-model-name", launch.served_names[0], "--enable-metrics"]
    # It would ask over TCP. The service's smoke test warms it up.
    arguments += ["--skip-server-warmup", *media_words(launch, HAS_DOMAINS)]
    for key, value in launch.arguments.items():
        arguments += argument_words(key, value)
    environment |= launch.environment
    if launch.rank:
        arguments += _rank_words(launch.rank)
        # A recipe's own address would be the same for all ranks.
        environment |= rank_environment(launch.rank)
    return Command(arguments, environment)


def _rank_words(rank: Rank) -> list[str]:
    arguments = ["--nnodes", str(len(rank.hosts)), "--node-rank", str(rank.number)]
    return [*arguments, "--dist-init-addr", f"{rank.addresses[0]}:{rank.port}"]


def rank_environment(rank: Rank) -> dict[str, str]:
    """The address of a rank: without it SGLang binds its queues to the first network that it
    finds."""
    return {"SGLANG_HOST_IP": rank.address}


def rank_misuses(arguments: Mapping[str, ArgumentValue | None]) -> Iterator[Fault]:
    """Arguments that several hosts can't have together."""
    if arguments.get("dp_size") not in (None, 1, "1"):
        yield "dp_size", "replicas within a service of several hosts", "drop it"
