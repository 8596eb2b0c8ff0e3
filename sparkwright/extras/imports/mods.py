"""Mods of sparkrun's recipes as files and patches.

A mod is a folder with a shell script, run.sh, which sparkrun runs in the container before the
engine starts. The script is never run here: each line has one of the forms below, or the mod is
refused.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import filter as matching
from hashlib import sha256
from posixpath import basename, splitext

from sparkwright.catalog.file_entries import File, Patch, is_code
from sparkwright.recipes.recipe import Foreign, Options, Unfit, texts

#: Path in a container of files that a mod writes to the engine's working folder.
FILES = "/opt/sparkwright/files/"
_WORD = r'(?:"[\w./+@=:-]+"|[\w./*+@=:-]+)'
_ECHO = r"""echo(?: "(?:[^"`$\\\n]|\$(?!\())*"| '[^'\n]*')?(?: >&2)?"""
#: Lines without an effect.
_SILENT = re.compile(rf"(?m)^[ \t]*(#.*|{_ECHO}|set -[euxo]+( pipefail)?)?[ \t]*(\n|\Z)")
#: Method that reads a line -> forms of the line. A download ends the script.
_FORMS = {method: re.compile(rf"[ \t]*{form}[ \t]*(\n|\Z)") for method, form in {
    "_copy": rf"(cp( -[fpv]+)?|install( -m ?\d+)?)(?P<names>( {_WORD})+) (?P<target>{_WORD})",
    "_patch": rf"patch(?P<options>( (-p\d|-R|-N|--forward|--batch|-d {_WORD}))+) (<|-i) "
              rf"(?P<diff>{_WORD})(?P<optional> \|\| (true|{_ECHO}))?",
    "_download": rf"cd {FILES[:-1]}\n(wget( -q)?|curl( -[fsSLO]+)+) https://huggingface\.co/"
                 r"(?P<repository>[\w.-]+/[\w.-]+)/(resolve|raw)/(?P<revision>[\w.-]+)/"
                 r"(?P<file>[\w./-]+)\s*\Z",
}.items()}  # fmt: skip


def read_mods(foreign: Foreign, options: Options) -> Iterator["Mod"]:
    """The readable mods of a recipe; other mods are left out, with a note."""
    for name in foreign.mods:
        try:
            mod = Mod(name.rpartition("/")[2], options.mods(name.removeprefix("mods/")))
            if mod.read(remote_code=options.remote_code):
                foreign.remarks.note("mod-with-code", "mods", f"mod {mod.name} is kept")
            yield mod
        except Unfit as refused:
            foreign.remarks.note(refused.key, "mods", refused.observed, reason=refused.reason)


@dataclass
class Mod:
    """Effects of a mod's script, in the order of its lines.

    Attributes:
        name: name of the mod's folder.
        own: the files of the folder: name -> text, "\\0" for a file that is not text.
        files, patches: entries of the recipe's keys.
        sources: path beside the recipe -> text of the files that the entries name.
    """

    name: str
    own: Mapping[str, str]
    files: list[File] = field(default_factory=list)
    patches: list[Patch] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)

    def read(self, *, remote_code: bool) -> bool:
        """Read the script. Return whether the mod brings or changes code.

        Raises:
            Unfit: a line has no known form, or its effect depends on the container; or, without
                ``remote_code``, the mod has code.
        """
        # The table of reasons has a reason for a missing script.
        reasons, rest = texts()["mods"], self.own.get("run.sh", "run.sh is missing")
        rest = re.sub(r"\$(WORKSPACE_DIR\b|\{WORKSPACE_DIR\})", FILES[:-1], _SILENT.sub("", rest))
        while rest:
            line = rest.partition("\n")[0].strip()
            try:
                method, match = next((m, x) for m, f in _FORMS.items() if (x := f.match(rest)))
                values = match.groupdict("").items()
                getattr(self, method)(**{name: word.replace('"', "") for name, word in values})
            except (LookupError, StopIteration, ValueError):
                reason = reasons.get(line.partition(" ")[0], reasons["other"])
                raise Unfit("mod-refused", f"mod {self.name}: {line[:200]}", reason) from None
            rest = rest[match.end() :]
        code = bool(self.patches) or any(
            is_code((file.at, file.name), self.sources.get(file.name, "").encode())
            for file in self.files
        )
        if code and not remote_code:
            raise Unfit("mod-not-allowed", f"mod {self.name}", "")
        return code

    def _copy(self, names: str, target: str) -> None:
        own = sorted({n for word in names.split() for n in matching(self.own, word) or [word]})
        for name in own:
            at = target + name if target.endswith("/") else target
            # A target without a slash may be a folder, unless it has the ending of the only source
            # file.
            if at == target and (len(own) > 1 or not splitext(at)[1] == splitext(name)[1] != ""):
                raise LookupError(target)
            if at.startswith(FILES):
                self.files.append(File(at=at, source=self._kept(name)))
            else:
                copied = [{"at": at, "source": self._kept(name)}]
                self.patches.append(Patch.model_validate({"files": copied}))

    def _patch(self, options: str, diff: str, optional: str) -> None:
        (strip,), (into,) = re.findall(r"-p(\d)", options), re.findall(r"-d (\S+)", options)
        step = {"patch": self._kept(diff), "into": into, "strip": strip}
        step |= {"optional": bool(optional), "reverse": " -R" in options}
        self.patches.append(Patch.model_validate(step))

    def _download(self, file: str, **revision: str) -> None:
        self.files.append(File(at=FILES + basename(file), file=file, **revision))

    def _kept(self, name: str) -> str:
        """Path of a mod's file, beside the recipe.

        A YAML file gets another ending, so that the catalog does not read the file as an entry.
        """
        if {"\0", "\ufffd"} & {*self.own[name]}:
            raise LookupError(name)  # not text
        digest = sha256(repr(sorted(self.own.items())).encode()).hexdigest()[:8]
        path = f"mods/{self.name}-{digest}/" + re.sub(r"\.ya?ml$", r"\g<0>.txt", name)
        self.sources[path] = self.own[name]
        return path
