"""Rules about files: what is deleted, overwritten or opened to others, and devices."""

from ralph.core.danger_paths import DEVICE as A_DEVICE
from ralph.core.danger_paths import OUTSIDE, ROOT, SINK, UNKNOWN
from ralph.core.danger_rule import (
    BOMB,
    DEVICE,
    EVASION,
    FILES,
    GIT,
    GUARD,
    HISTORY,
    PERMISSIONS,
    PERSISTENCE,
    PRIVILEGE,
    REVERSE,
    Call,
    Refused,
    Rule,
)
from ralph.core.shell_text import ANY, EACH, ENDLESS, SURE, plain, shown, unknown

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.core.danger_paths import Places

CURL_VALUED = "HdXuAeTFmbcxwEr"
_HISTORIES = (".bash_history", ".zsh_history", ".history", ".python_history", ".sh_history")


def judge_change(path: str, places: "Places", cwd: str, verb: str, *, into: bool = False) -> None:
    """Refuse a change of this path, unless it lies below the project or the temporary directory.
    Something may be put `into` the project itself."""
    kind, name = places.kind(path, cwd), shown(path)
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        raise Refused(REVERSE, f"{name} is a connection to another machine")
    if kind == SINK:
        return
    if kind == A_DEVICE:
        raise Refused(DEVICE, f"{name} is a device or a switch of the kernel")
    if kind == UNKNOWN and verb == "deletes" and _is_sure(path, places):
        return
    if kind == UNKNOWN:
        raise Refused(FILES, f"nobody can tell what it {verb}: {name}; {_known(places)}")
    _judge_special(path, places, cwd, verb)
    if kind == OUTSIDE and into and places.is_temporary_root(path, cwd):
        return
    if kind == OUTSIDE:
        raise Refused(FILES, f"it {verb} {name}, outside the project and the temporary directory")
    if kind == ROOT and not into:
        raise Refused(FILES, f"it {verb} the whole project: {name}")
    if places.is_git(path, cwd) and not path.endswith(".lock"):
        raise Refused(GIT, f"it {verb} {name}, the repository itself")


def _is_sure(path: str, places: "Places") -> bool:
    """`rm -rf "${BUILD_DIR:?}/out"`: it is set, and its author means it."""
    rest = path.removeprefix(f"{ANY}{SURE}")
    return not places.where.strict and rest != path and plain(rest) and ".." not in rest


def _known(places: "Places") -> str:
    """What to write instead of a path that nobody knows."""
    if places.where.strict:
        return "name the path"
    return "name the path, set the variable in this command, or write ${NAME:?}"


def _judge_special(path: str, places: "Places", cwd: str, verb: str) -> None:
    """Refuse changes of files that mean more than they hold."""
    name = shown(path)
    if path.endswith(_HISTORIES):
        raise Refused(HISTORY, f"it {verb} the shell's history: {name}")
    if places.starts_things(path, cwd):
        raise Refused(
            PERSISTENCE, f"what stands in {name} is run later, by a login, a timer or git"
        )
    if places.steers(path, cwd) or places.may_steer(path, cwd):
        raise Refused(GUARD, f"{name} steers Ralph or the agent's host")


def _each(call: Call, paths: list[str], verb: str, *, into: bool = False) -> bool:
    for path in paths:
        judge_change(path, call.places, call.state.cwd, verb, into=into)
    return False


def judge_everything(paths: list[str], verb: str) -> None:
    """Refuse what is done to every file of the project."""
    if any(EACH in path for path in paths):
        raise Refused(FILES, f"it {verb} every file of the project; name those that you mean")


def _removes(call: Call) -> bool:
    judge_everything(call.args, "deletes")
    return _each(call, [path for path in call.args if path], "deletes")  # "" is no file


def _moves(call: Call) -> bool:
    target = call.value("-t", "--target-directory")
    sources, last = (call.args, [target]) if target else (call.args[:-1], call.args[-1:])
    judge_everything(sources, "moves away")
    for path in call.args:
        if call.places.kind(path, call.state.cwd) == SINK:
            raise Refused(FILES, f"mv would replace {shown(path)} itself")
    _each(call, sources, "moves away")
    return _each(call, last, "overwrites", into=True)


def _copies(call: Call) -> bool:
    target = call.value("-t", "--target-directory") if call.name != "rsync" else None
    makes = call.name == "install" and (call.has("--directory") or call.has_letter("d", "mogt"))
    last = [target] if target else call.args if makes else call.args[1:][-1:]
    if call.name == "rsync" and call.has("--delete", "--delete-after", "--delete-excluded"):
        return _each(call, last, "deletes in")
    return _each(call, last, "overwrites", into=True)


def _links(call: Call) -> bool:
    """A link to a whole directory outside would lead what follows out of the project."""
    whole = call.places.absolute(call.args[0], call.state.cwd) if call.args else "/x/y"
    if (whole.count("/") < 2 and whole[0] == "/") or whole == call.places.where.home:
        raise Refused(EVASION, f"a link to {whole} leads out of the project")
    _copies(call)
    cwd = call.state.cwd
    if call.args and call.places.kind(whole, cwd) == OUTSIDE:  # what is done there is done outside
        name = whole.rpartition("/")[2]
        target = call.args[1] if len(call.args) > 1 else name
        call.places.link(f"{target}/{name}", whole, cwd)
        call.places.link(target, whole, cwd)
    return False


def _written(call: Call) -> bool:
    return _each(call, call.args, "overwrites")


def download_targets(call: Call) -> list[str]:
    """The files that curl or wget is told to write."""
    if call.name == "wget":
        return call.clustered("O", "eoaUPtTwQlADRI") + call.values("--output-document")
    return call.clustered("o", CURL_VALUED) + call.values("--output")


def _output_option(call: Call) -> bool:
    if call.name in ("curl", "wget"):
        found = download_targets(call)
    else:
        found = call.values("-o", "--output", "--output-file", "--out", "-out")
    return _each(call, [path for path in found if path not in ("", "-")], "overwrites", into=True)


def _edits(call: Call) -> bool:
    """`sed -i` and `perl -i`: every word that is a path."""
    lettered = call.has_letter("i", "eEIMmrC0" if call.name in ("perl", "ruby") else "efl")
    if not lettered and not call.has("--in-place"):
        return False
    script = call.value("-e", "--expression", "-f", "--file", "-E")
    paths = call.args if script is not None else call.args[1:]
    return _each(call, [path for path in paths if path != script], "overwrites")


def _dd(call: Call) -> bool:
    outputs = [word[3:] for word in call.words if word.startswith("of=")]
    endless = any(w in ("if=/dev/zero", "if=/dev/urandom", "if=/dev/random") for w in call.words)
    _each(call, outputs, "overwrites")
    if endless and outputs and not any(word.startswith("count=") for word in call.words):
        raise Refused(BOMB, "without count= it fills the disk")
    sizes = [_size(w.partition("=")[2]) for w in call.words if w.startswith(("count=", "bs="))]
    if endless and len(sizes) == 2 and sizes[0] * sizes[1] >= _HUGE:
        raise Refused(BOMB, "it would fill the disk")
    return False


def _unpacks(call: Call) -> bool:
    """Archives are unpacked where -C or -d says, and written where -f does."""
    if call.name == "unzip":
        target = call.value("-d")
        return _each(call, [target] if target else [], "unpacks into", into=True)
    first = call.words[0] if call.words else ""
    letters = "" if first[:2] == "--" else first
    if "x" in letters or call.has("--extract") or call.has_letter("x", "fC"):
        if "P" in letters or call.has_letter("P", "fC") or call.has("--absolute-names"):
            raise Refused(FILES, "it may unpack to anywhere")
        target = call.value("-C", "--directory")
        return _each(call, [target] if target else [], "unpacks into", into=True)
    return False


def _runs_by_tar(call: Call) -> bool:
    starts = ("--checkpoint-action", "--to-command", "--use-compress-program", "--rsh-command")
    return any(word.startswith(starts) for word in call.words)


def _steering(call: Call) -> bool:
    return any(call.places.steers(path, call.state.cwd) for path in call.args if not unknown(path))


def _size(text: str) -> int:
    """How many bytes `10M` means; 0 if nobody can tell."""
    text = text.upper().rstrip("B").rstrip("I")
    power = "KMGTPE".find(text[-1:]) + 1 if text else 0
    number = text.rstrip("KMGTPE").lstrip("+")
    return int(number) * 1024**power if number.isdecimal() and number.isascii() else 0


def _is_huge(call: Call) -> bool:
    given = call.value("-s", "--size", "-l", "--length", "-c", "--bytes")
    return _size(given or "") >= _HUGE


_HUGE = 100 * 1024**3


def _endless(call: Call) -> bool:
    return not call.state.piped and any(
        word in ("/dev/zero", "/dev/urandom", "/dev/random") for word in call.words
    )


def _without_end(call: Call) -> bool:
    return ENDLESS in (call.state.stdin or "") and bool(call.args)


def _mode(call: Call) -> str:
    """The rights that are given: a word of chmod, an option of others."""
    if call.name != "chmod":
        return "".join([*call.values("--mode"), *call.clustered("m", "ogtS")])
    return next(
        (w for w in call.words if not w.startswith("--") and (w[:1] != "-" or w[1:2] in "rwxst")),
        "",
    )


def _added(mode: str) -> list[tuple[str, str]]:
    """Who gets which rights by `u+x,g=rw`."""
    parts = [part.partition("+") for part in mode.replace("=", "+").split(",")]
    return [(who, rights) for who, plus, rights in parts if plus]


def _opens_to_all(call: Call) -> bool:
    mode = _mode(call)
    if mode.isdecimal():
        return mode[-1] in "2367"
    return any(("o" in who or "a" in who) and "w" in rights for who, rights in _added(mode))


def _sets_identity(call: Call) -> bool:
    """The set-user-id and set-group-id bits."""
    mode = _mode(call)
    if mode.isdecimal():
        return len(mode) > 3 and mode[-4] in "2467"
    return any("s" in rights for _, rights in _added(mode))


def _shuts(call: Call) -> bool:
    return call.has_letter("R") and _mode(call) in ("000", "0", "a-rwx", "-rwx", "a=", "a-w", "a-r")


def _outside(call: Call) -> bool:
    paths = [path for path in call.args[1:] if path != _mode(call)]
    for path in paths:
        kind = call.places.kind(path, call.state.cwd)
        if kind in (OUTSIDE, UNKNOWN, A_DEVICE):
            raise Refused(
                PERMISSIONS, f"it changes the rights of {shown(path)}, outside the project"
            )
    return False


def _to_root(call: Call) -> bool:
    return bool(call.args) and call.args[0].partition(":")[0] in ("root", "0")


_DISKS = (
    "fdisk sfdisk cfdisk gdisk sgdisk parted wipefs mkswap swapon swapoff losetup"
    " cryptsetup hdparm blkdiscard"
    " badblocks mdadm pvcreate pvremove vgremove lvremove lvcreate zpool diskutil"
    " dmsetup tune2fs e2fsck"
    " debugfs resize2fs nvme mkfs mkfs.ext4 mkfs.ext3 mkfs.ext2 mkfs.xfs mkfs.btrfs"
    " mkfs.vfat mkfs.fat"
    " mkfs.ntfs newfs newfs_hfs mke2fs format flashrom efibootmgr grub-install"
)
RULES = (
    Rule(FILES, "", "rm rmdir unlink shred srm trash trash-put rimraf del-cli gio", test=_removes),
    Rule(FILES, "", "mv rename", test=_moves),
    Rule(FILES, "", "cp install rsync ditto", test=_copies),
    Rule(FILES, "", "ln link", test=_links),
    Rule(FILES, "", "tee truncate fallocate sponge mkfifo patch", test=_written),
    Rule(FILES, "", "sed gsed perl", test=_edits),
    Rule(FILES, "", "dd", test=_dd),
    Rule(FILES, "", "tar gtar bsdtar unzip", test=_unpacks),
    Rule(EVASION, "tar would run a command", "tar gtar bsdtar", test=_runs_by_tar),
    Rule(FILES, "", "curl wget sort openssl gcc cc clang rustc", test=_output_option),
    Rule(
        GUARD,
        "it changes what steers Ralph or the agent's host",
        "touch mkdir chmod chown",
        test=_steering,
    ),
    Rule(
        DEVICE,
        "it changes disks or their tables",
        _DISKS,
        test=lambda c: c.words[:1] not in (["-l"], ["--list"], ["list"], ["status"]),
    ),
    Rule(
        PRIVILEGE,
        "it mounts or unmounts file systems",
        "mount umount fusermount",
        test=lambda c: bool(c.args),
    ),
    Rule(BOMB, "it would fill the disk", "truncate fallocate mkfile head", test=_is_huge),
    Rule(BOMB, "it would fill the disk", "tee sponge", test=_without_end),
    Rule(
        PERMISSIONS,
        "everybody could write what is made from now on; leave the umask as it is",
        "umask",
        test=lambda c: bool(c.args) and not c.args[0].strip("0"),
    ),
    Rule(BOMB, "it never ends", "cat cp", test=_endless),
    Rule(
        PERMISSIONS,
        "everybody could write there; give rights to the owner only",
        "chmod install mkdir",
        test=_opens_to_all,
    ),
    Rule(
        PERMISSIONS,
        "it lets a program run as its owner",
        "chmod install mkdir",
        test=_sets_identity,
    ),
    Rule(PERMISSIONS, "it shuts everybody out, recursively", "chmod", test=_shuts),
    Rule(PERMISSIONS, "", "chmod chown chgrp", test=_outside),
    Rule(PERMISSIONS, "it gives files to root", "chown", test=_to_root),
    Rule(
        PERMISSIONS,
        "it changes attributes or rights beyond the mode",
        "chattr setfacl setcap chflags xattr",
    ),
)
