"""Make a table of sparkwright/engines/sglang/tables from SGLang's wheel, by its real parser.

    pip download --no-deps sglang==VERSION
    python .ci/sglang_table.py sglang-VERSION-*.whl > sparkwright/engines/sglang/tables/VERSION.json

The script needs msgspec, because SGLang declares its arguments with msgspec. Stubs replace packages
that are not installed and SGLang's own modules that compute: an argument's name, type, choices and
default do not depend on these modules.
"""

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import re
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from vllm_dump import flags

#: Modules of SGLang's that load kernels, models or platforms.
_COMPUTING = (
    "sglang.kernels",
    *(
        f"sglang.srt.{name}"
        for name in (
            "configs", "distributed", "hardware_backend.npu", "layers", "lora", "models",
            "platforms", "runtime_context", "utils.hf_transformers",
            "utils.hf_transformers_patches", "utils.hf_transformers_utils",
        )
    ),
)  # fmt: skip
_REAL = {"sglang", "msgspec", *sys.stdlib_module_names}
#: Accelerators that SGLang looks for in PyTorch: with a stub, they would seem to be present.
_ABSENT = ("npu", "xpu", "hpu", "musa", "mlu")
#: Aliases of EAGLE that SpeculativeAlgorithm.from_string takes beside the members of the enum.
_ALIASES = ("NEXTN",)


class _Open(type):
    def __getattr__(cls, name: str) -> Any:
        return getattr(Stub(), name)


class Base(metaclass=_Open):
    """Base class that replaces an unknown class."""

    def __init_subclass__(cls, **_: object) -> None:
        pass


class Stub:
    """Any object: called, indexed, compared and searched without an effect."""

    def __call__(self, *arguments: Any, **_: Any) -> Any:
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) else Stub()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub()

    def __mro_entries__(self, bases: Sequence[Any]) -> tuple[type, ...]:
        return () if any(isinstance(each, type) for each in bases) else (Base,)

    def __getitem__(self, key: object) -> Any:
        return Stub()

    def __iter__(self) -> Any:
        return iter(())

    def __or__(self, other: object) -> Any:
        return Stub()

    __ror__ = __or__

    def __bool__(self) -> bool:
        return False

    def __lt__(self, other: object) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __int__(self) -> int:
        return 0

    def __format__(self, spec: str) -> str:
        return "0"


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stubs of modules that compute, and of every package except SGLang and msgspec."""

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """Spec of a stub."""
        computes = any(name == each or name.startswith(f"{each}.") for each in _COMPUTING)
        if computes or name.partition(".")[0] not in _REAL:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Module with a stub for every name."""
        module = ModuleType(spec.name)

        def attribute(name: str) -> Any:
            if name == "__version__":
                return "0.0.0"
            if name.startswith("__") or name in _ABSENT:
                raise AttributeError(name)
            return Stub()

        module.__getattr__ = attribute  # type: ignore[method-assign]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run nothing."""


def _algorithms(source: str) -> list[str]:
    """Names of speculative algorithms, from the enum's source."""
    enum = next(
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == "SpeculativeAlgorithm"
    )
    members = (node.targets[0] for node in enum.body if isinstance(node, ast.Assign))
    names = [member.id for member in members if isinstance(member, ast.Name)]
    return sorted({*names, *_ALIASES} - {"NONE"})


def parser(folder: str) -> argparse.ArgumentParser:
    """The real parser of the SGLang that is unpacked in a folder."""
    sys.path.insert(0, folder)
    sys.meta_path.insert(0, Stubs())
    result = argparse.ArgumentParser(prog="sglang serve")
    importlib.import_module("sglang.srt.server_args").ServerArgs.add_cli_args(result)
    return result


def main(wheel: Path) -> None:
    """Print the table of a wheel's version."""
    named = re.search(r"-(\d+\.\d+\.\d+)", wheel.name)
    assert named, f"{wheel}: no version in its name"
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(
                folder, [each for each in archive.namelist() if each.endswith(".py")]
            )
        listed = flags(parser(folder))
        source = (Path(folder) / "sglang/srt/speculative/spec_info.py").read_text(encoding="utf-8")
    del sys.meta_path[0]
    from vllm_table import arguments_of, printed  # it loads packages that were stubs before

    arguments, aliases = arguments_of(listed)
    names = {"speculative_algorithm": _algorithms(source)}
    print(
        printed({"version": named[1], "arguments": arguments, "names": names, "aliases": aliases})
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python .ci/sglang_table.py WHEEL")
    main(Path(sys.argv[1]))
