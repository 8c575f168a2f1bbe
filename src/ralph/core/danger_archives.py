"""Rules about archives: where they are written, and those that delete what they pack."""

from ralph.core.danger_files import judge_change, judge_everything
from ralph.core.danger_rule import FILES, Call, Rule, positional

_TAR_VALUED = ("-C", "--directory", "-f", "--file", "-T", "-X", "--exclude", "-I", "-b")


def _judge(call: Call, archive: list[str], packed: list[str], *, deletes: bool, cwd: str) -> bool:
    for path in archive:
        if path not in ("", "-") and ":" not in path:
            judge_change(path, call.places, call.state.cwd, "overwrites", into=True)
    if deletes:
        judge_everything(packed, "deletes")
        for path in packed:
            judge_change(path, call.places, cwd, "deletes")
    return False


def _tar(call: Call) -> bool:
    """`tar cf ARCHIVE FILES`, also with old letters; -C says where the files are."""
    first = call.words[0] if call.words else ""
    old = first[:1] not in ("-", "")  # letters without a dash
    letters = first if old else ""
    creates = "c" in letters or call.has("--create") or call.has_letter("c", "fCTXIb")
    if not creates:
        return False
    valued = [*_TAR_VALUED, *(w for w in call.words if w[:1] == "-" and w[-1:] in "fCTXIb")]
    given = positional(call.words, valued)
    archive = call.values("--file") or call.clustered("f", "CTXIb")
    if old:
        archive, given = (given[1:2], given[2:]) if "f" in letters else ([], given[1:])
    cwd = call.state.cwd
    for place in call.values("-C", "--directory"):
        cwd = call.places.absolute(place, cwd)
    return _judge(call, archive, given, deletes=call.has("--remove-files"), cwd=cwd)


def _zip(call: Call) -> bool:
    """`zip -m ARCHIVE FILES` moves them into it."""
    given = positional(call.words, ["-b", "-t", "-tt", "-n", "-P", "-x", "-i", "-s"])
    deletes = call.has("--move") or call.has_letter("m", "btnPxi")
    return _judge(call, given[:1], given[1:], deletes=deletes, cwd=call.state.cwd)


def _seven(call: Call) -> bool:
    """`7z a ARCHIVE FILES -sdel`, `rar m ARCHIVE FILES`"""
    verb, given = "".join(call.args[:1]), call.args[1:]
    deletes = call.has("-sdel", "-df") or (call.name == "rar" and verb in ("m", "mf"))
    if verb not in ("a", "u", "m", "mf", "d"):
        return False
    return _judge(call, given[:1], given[1:], deletes=deletes, cwd=call.state.cwd)


RULES = (
    Rule(FILES, "", "tar gtar bsdtar", test=_tar),
    Rule(FILES, "", "zip", test=_zip),
    Rule(FILES, "", "7z 7za 7zz 7zr rar", test=_seven),
)
