"""Rules about where commands write that have another purpose: an option says it, they replace the
very file that they are given, or they pack files and delete them."""

from ralph.guard.rules.files import change, judge_change, judge_everything
from ralph.guard.rules.rule import Call, positional, rules

# By command: options after which a directory or a file to write stands.
_OPTIONS = {
    "curl": "--output-dir",
    "wget": "-P --directory-prefix",
    **dict.fromkeys(("7z", "7za", "7zz", "go"), "-o"),
    **dict.fromkeys(("pip", "pip3"), "-t --target --prefix --root"),
    "cmake": "--prefix",
}
_PLACES = ("PREFIX=", "prefix=", "DESTDIR=")
_TAR_VALUED = ("-C", "--directory", "-f", "--file", "-T", "-X", "--exclude", "-I", "-b")


def _by_option(call: Call) -> None:
    given = call.values(*_OPTIONS[call.name].split())
    change(call, filter(None, given), "writes to", into=True)


def _installs(call: Call) -> None:
    given = [word.partition("=")[2] for word in call.words if word.startswith(_PLACES)]
    change(call, filter(None, given), "installs into", into=True)


def _replaces(call: Call) -> None:
    """`gzip FILE` deletes FILE; not if it is kept, printed or only looked at."""
    kept = call.has("--keep", "--stdout", "--to-stdout", "--test", "--list")
    if not kept and not call.has_letter("ktlc"):
        change(call, filter(None, call.args), "replaces")


def _in_place(call: Call) -> None:
    """`awk -i inplace`, `yq -i`, `ruby -i`"""
    given: list[str] = []
    if call.name not in ("awk", "gawk"):
        given = call.args[1:] if call.has_letter("i", "eE") or call.has("--inplace") else []
    elif "inplace" in call.values("-i", "--include"):
        given = positional(call.words, ["-i", "--include", "-v", "-F", "-f"])
        given = given[call.value("-f") is None :]
    change(call, filter(None, given), "overwrites")


def _splits(call: Call) -> None:
    given = positional(call.words, ["-l", "-b", "-n", "-a", "-C"])[1:2]
    change(call, filter(None, given), "writes to")


def _packs(call: Call, archive: list[str], packed: list[str], *, deletes: bool, cwd: str) -> None:
    written = [path for path in archive if path not in ("", "-") and ":" not in path]
    change(call, written, "overwrites", into=True)
    if deletes:
        judge_everything(packed, "deletes")
        for path in packed:
            judge_change(path, call.places, cwd, "deletes")


def _tar(call: Call) -> None:
    """`tar cf ARCHIVE FILES`, also with old letters; -C says where the files are."""
    first = call.words[0] if call.words else ""
    letters = first if first[:1] not in ("-", "") else ""  # without a dash
    if "c" not in letters and not call.has("--create") and not call.has_letter("c", "fCTXIb"):
        return
    valued = [*_TAR_VALUED, *(w for w in call.words if w[:1] == "-" and w[-1:] in "fCTXIb")]
    given = positional(call.words, valued)
    archive = call.values("--file") or call.clustered("f", "CTXIb")
    if letters:
        archive, given = (given[1:2], given[2:]) if "f" in letters else ([], given[1:])
    cwd = call.state.cwd
    for place in call.values("-C", "--directory"):
        cwd = call.places.absolute(place, cwd)
    _packs(call, archive, given, deletes=call.has("--remove-files"), cwd=cwd)


def _zip(call: Call) -> None:
    """`zip -m ARCHIVE FILES` moves them into it."""
    given = positional(call.words, ["-b", "-t", "-tt", "-n", "-P", "-x", "-i", "-s"])
    deletes = call.has("--move") or call.has_letter("m", "btnPxi")
    _packs(call, given[:1], given[1:], deletes=deletes, cwd=call.state.cwd)


def _seven(call: Call) -> None:
    """`7z a ARCHIVE FILES -sdel`, `rar m ARCHIVE FILES`"""
    verb, given = "".join(call.args[:1]), call.args[1:]
    deletes = call.has("-sdel", "-df") or (call.name == "rar" and verb in ("m", "mf"))
    if verb in ("a", "u", "m", "mf", "d"):
        _packs(call, given[:1], given[1:], deletes=deletes, cwd=call.state.cwd)


_TABLE = f"""\
file-system:
    {"|".join(_OPTIONS)} (by option)
    make|gmake|ninja (installs)
    gzip|gunzip|bzip2|bunzip2|xz|unxz|lzma|unlzma|lz4|pigz|compress|uncompress (replaces)
    awk|gawk|ruby|yq (in place)
    rsync --remove-source-files (takes away)
    split|csplit (splits)
    tar|gtar|bsdtar (tar)
    zip (zip)
    7z|7za|7zz|7zr|rar (seven)
"""
RULES = rules(
    _TABLE,
    *(_by_option, _installs, _replaces, _in_place, _splits, _tar, _zip, _seven),
    takes_away=lambda c: change(c, filter(None, c.args[:-1]), "deletes"),
)
