"""`python -m lab`: the virtual fleet's command line. The command needs only the standard library;
run it as root.

Commands that change the fleet hold the lab until they end (`lab.holding`). `ssh`, `exec` and
`status` do not hold the lab, so that they can inspect a fleet that another user works on.
"""

import argparse
import os
import sys

from lab import fleet, holding, machines, network, packages
from lab.layout import MACHINES, Machine


def main() -> int:
    """Parse and run one command."""
    parser = _parser()
    arguments = parser.parse_args()
    match arguments.command:
        case "ssh":
            command = [*fleet.ssh_command(arguments.machine), *arguments.words]
            os.execvp(command[0], command)
        case "hold":
            parts = arguments.words[arguments.words[:1] == ["--"] :]
            if not parts:
                parser.error("hold needs a command")
            with holding.held(arguments.purpose, wait=arguments.wait):
                return holding.call(parts)
    if os.geteuid() != 0:
        parser.error("only root can manage machines, mounts and bridges: use sudo")
    match arguments.command:
        case "packages":
            packages.install(packages.BROWSER if arguments.browser else packages.NEEDED)
        case "status":
            fleet.status()
        case "keep":
            holding.keep(arguments.process, arguments.purpose, wait=arguments.wait)
        case "exec":
            parts = [word for word in arguments.words if word != "--"]
            done = machines.inside(arguments.machine, parts)
            sys.stdout.write(done.stdout)
            sys.stderr.write(done.stderr)
            return done.returncode
        case _:
            with holding.held(f"lab {arguments.command}", wait=arguments.wait):
                _change(arguments)
    return 0


def _change(arguments: argparse.Namespace) -> None:
    match arguments.command:
        case "up":
            fleet.up(tuple(filter(None, arguments.only.split(","))))
        case "down":
            fleet.down(keep_base=arguments.keep_base)
        case "power-cut":
            machines.cut_power(arguments.machine)
        case "power-on":
            fleet.up((arguments.machine.name,))
        case "restart":
            machines.cut_power(arguments.machine)
            fleet.up((arguments.machine.name,))
        case "link":
            network.link(arguments.machine, up=arguments.state == "up")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description="The virtual fleet.")
    commands = parser.add_subparsers(dest="command", required=True)

    def holding_it(name: str, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text)
        command.add_argument("--wait", action="store_true", help="wait until the lab is free")
        return command

    needed = commands.add_parser("packages", help="install the system packages of the lab")
    needed.add_argument("--browser", action="store_true", help="only for tests in a browser")
    up = holding_it("up", "start the machines that are off")
    up.add_argument("--only", default="", help="hosts, separated by commas")
    down = holding_it("down", "remove every trace")
    down.add_argument("--keep-base", action="store_true", help="keep base file systems and images")
    commands.add_parser("status", help="print the machines' states and the lab's holder")
    hold = holding_it("hold", "hold the lab while a command runs (by sudo unless root)")
    hold.add_argument(
        "--for", dest="purpose", default="lab hold", help="purpose that other users see"
    )
    hold.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    keep = holding_it("keep", "hold the lab for a process, until standard input ends")
    keep.add_argument("process", type=int)
    keep.add_argument("purpose")
    for name, text in (
        ("power-cut", "end every process of a machine at once"),
        ("power-on", "boot a machine with its disk"),
        ("restart", "cut the power of a machine, then boot the machine"),
    ):
        holding_it(name, text).add_argument("machine", type=_machine)
    link = holding_it("link", "unplug or plug in a machine's cable")
    link.add_argument("machine", type=_machine)
    link.add_argument("state", choices=("up", "down"))
    inside = commands.add_parser("exec", help="run a command in a machine as root, without SSH")
    inside.add_argument("machine", type=_machine)
    inside.add_argument("words", nargs=argparse.REMAINDER)
    ssh = commands.add_parser("ssh", help="log in to a machine")
    ssh.add_argument("machine", type=_machine)
    ssh.add_argument("words", nargs=argparse.REMAINDER)
    return parser


def _machine(name: str) -> Machine:
    for machine in MACHINES:
        if machine.name == name:
            return machine
    raise argparse.ArgumentTypeError(f"{name!r}: not one of {', '.join(m.name for m in MACHINES)}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("interrupted: `up` continues, `down` removes all created files", file=sys.stderr)
        sys.exit(130)
