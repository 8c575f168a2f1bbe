"""Rules about where commands write that have another purpose: an option says it, or they replace
the very file that they are given."""

from ralph.core.danger_files import judge_change
from ralph.core.danger_rule import FILES, Call, Rule, positional

# By command: options after which a directory or a file to write stands.
_OPTIONS = {
    "curl": "--output-dir",
    "wget": "-P --directory-prefix",
    "7z": "-o",
    "7za": "-o",
    "7zz": "-o",
    "go": "-o",
    "pip": "-t --target --prefix --root",
    "pip3": "-t --target --prefix --root",
    "cmake": "--prefix",
}
_PLACES = ("PREFIX=", "prefix=", "DESTDIR=")
_PACKERS = "gzip gunzip bzip2 bunzip2 xz unxz lzma unlzma lz4 pigz compress uncompress"


def _judge(call: Call, paths: list[str], verb: str, *, into: bool = False) -> bool:
    for path in filter(None, paths):
        judge_change(path, call.places, call.state.cwd, verb, into=into)
    return False


def _by_option(call: Call) -> bool:
    return _judge(call, call.values(*_OPTIONS[call.name].split()), "writes to", into=True)


def _installs(call: Call) -> bool:
    given = [word.partition("=")[2] for word in call.words if word.startswith(_PLACES)]
    return _judge(call, given, "installs into", into=True)


def _replaces(call: Call) -> bool:
    """`gzip FILE` deletes FILE; not if it is kept, printed or only looked at."""
    if call.has("--keep", "--stdout", "--to-stdout", "--test", "--list") or call.has_letter("ktlc"):
        return False
    return _judge(call, call.args, "replaces")


def _in_place(call: Call) -> bool:
    """`awk -i inplace`, `yq -i`, `ruby -i`"""
    if call.name in ("awk", "gawk"):
        if "inplace" not in call.values("-i", "--include"):
            return False
        given = positional(call.words, ["-i", "--include", "-v", "-F", "-f"])
        return _judge(call, given[call.value("-f") is None :], "overwrites")
    if not (call.has_letter("i", "eE") or call.has("--inplace")):
        return False
    return _judge(call, call.args[1:], "overwrites")


def _takes_away(call: Call) -> bool:
    return _judge(call, call.args[:-1], "deletes")


def _splits(call: Call) -> bool:
    return _judge(call, positional(call.words, ["-l", "-b", "-n", "-a", "-C"])[1:2], "writes to")


RULES = (
    Rule(FILES, "", " ".join(_OPTIONS), test=_by_option),
    Rule(FILES, "", "make gmake ninja", test=_installs),
    Rule(FILES, "", _PACKERS, test=_replaces),
    Rule(FILES, "", "awk gawk ruby yq", test=_in_place),
    Rule(FILES, "", "rsync", flags="--remove-source-files", test=_takes_away),
    Rule(FILES, "", "split csplit", test=_splits),
)
