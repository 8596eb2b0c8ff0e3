"""`python -m lab.real_engine`: build, push and remove. The command needs only the standard library;
run it as root."""

import argparse
import os
import sys

from lab.holding import held
from lab.real_engine import build, image
from lab.real_engine.llama_server import LLAMA_SERVER
from lab.real_engine.vllm import VLLM

KINDS = {"vllm": VLLM, "llama-server": LLAMA_SERVER}


def main() -> int:
    """Parse and run one command."""
    parser = argparse.ArgumentParser(prog="python -m lab.real_engine", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("build", help="build tree and layers if they are missing")
    push = commands.add_parser("push", help="build, and push missing parts to a registry")
    push.add_argument("--registry", required=True, metavar="http://HOST:PORT")
    for command in (make, push):
        command.add_argument("--engine", choices=sorted(KINDS), default="vllm")
    commands.add_parser("remove", help="remove all builds")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("only root can build a root file system: use sudo")
    with held(f"lab.real_engine {arguments.command}"):
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.command == "remove":
        build.remove()
        return 0
    engine = build.ensure(KINDS[arguments.engine])
    tag = engine.kind.tag
    if arguments.command == "push":
        digest, sent = image.push_to(arguments.registry, engine.kind, engine.layers)
        print(f"{tag.repository}:{tag.names[0]} {digest} sent {sent} bytes", flush=True)
        return 0
    for layer in engine.layers:
        print(f"{layer.path} {layer.digest} {layer.size} bytes", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted: no partial build is left; repeat the command", file=sys.stderr)
        sys.exit(130)
