"""Rules about credentials: in files, in the environment, and those that programs hand out."""

from ralph.core.danger_expand import is_secret
from ralph.core.danger_keys import KEYS, is_key_file, may_be_key
from ralph.core.danger_paths import FREE_PLACE, OUTSIDE, UNKNOWN, is_below
from ralph.core.danger_rule import CREDENTIALS, Call, Refused, Rule
from ralph.core.danger_variables import reads_few
from ralph.core.shell_text import ANY, NAMED, SECRET, VAULT, names, shown, unknown

TYPE_CHECKING = False  # as typing has it, which takes a while to import
if TYPE_CHECKING:
    from ralph.core.danger_paths import Places

# Below the home directory: whole directories end with a slash.
_AT_HOME = (
    *(
        ".ssh/id_",
        ".aws/",
        ".gnupg/",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".docker/config.json",
        ".kube/",
    ),
    *(".git-credentials", ".config/gh/", ".config/gcloud/", ".azure/", ".claude/.credentials"),
    *(
        ".claude.json",
        ".codex/auth",
        ".gemini/oauth",
        ".config/op/",
        ".password-store/",
        ".vault-token",
    ),
    *(
        ".cargo/credentials",
        ".gem/credentials",
        ".config/hub",
        ".pgpass",
        ".my.cnf",
        ".terraform.d/cred",
    ),
    *(
        ".config/rclone",
        ".local/share/keyrings",
        ".mozilla/",
        ".config/google-chrome",
        "Library/Keychains",
    ),
    *(
        ".bash_history",
        ".zsh_history",
        ".ssh/*",
        f".ssh/{ANY}",
        f".ssh/{NAMED}",
        ".local/share/opencode/auth",
        ".config/git/credentials",
        ".m2/settings",
        ".s3cfg",
    ),
)
_ANYWHERE = (
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/passwd",
    "/etc/sudoers",
    "/etc/ssh/ssh_host_",
    "/run/secrets/",
)
_SAMPLES = (".example", ".sample", ".template", ".dist", ".test", ".defaults", ".schema", ".ci")
# Commands whose words only name a file, and commands whose first word is a pattern.
_NAMERS = names(
    "echo printf ls test [ stat touch mkdir file cd find fd which git gh rm rmdir"
    " ssh-keygen ssh-add ssh"
    " du basename dirname realpath readlink export chmod chown docker docker-compose"
    " podman code make"
    " npm yarn pnpm node dotenv source . exit return true false : set unset kill gpg"
)
_PATTERNS = names("grep egrep fgrep rg ag ack sed gsed awk gawk mawk perl jq yq")
_ENV_READERS = names(
    "cat bat head tail less more grep egrep fgrep rg ag sed gsed awk gawk cut strings"
    " xxd od hexdump base64 tac"
    " nl view vim vi nano cp mv scp rsync curl wget tar zip gzip nc sort uniq jq diff"
    " dd tee python python3"
)
_PLAIN_READERS = names(
    "cat bat head tail less more grep egrep fgrep rg ag sed gsed awk gawk cut strings xxd od"
    " hexdump base64 tac nl view vim vi nano sort uniq jq yq diff paste column fold fmt pr expand"
    " unexpand rev join comm shuf split csplit sdiff colordiff batcat most iconv ack mawk nawk"
)
_PRINTERS = names(
    "echo printf cat tee base64 xxd od hexdump head tail rev tr logger wall write env"
)


_SINGLE = (".ssh/id_rsa", ".ssh/id_ed25519", ".aws/credentials", ".netrc", ".npmrc")


def judge_reading(path: str, places: "Places", cwd: str) -> None:
    """Refuse to read what holds credentials."""
    if is_credential(path, places, cwd):
        raise Refused(CREDENTIALS, f"{shown(path)} holds credentials")


def is_credential(path: str, places: "Places", cwd: str) -> bool:
    """Whether the file is known to hold credentials; samples and public keys are not."""
    if path.endswith(".pub") or unknown(cwd) or path.startswith("-"):
        return False
    home, whole = places.at_home(path, cwd), places.absolute(path, cwd)
    if home and (home.startswith(_AT_HOME) or f"{home}/" in (".ssh/", *_AT_HOME)):
        return True
    if any(c in whole for c in "*?["):
        from fnmatch import fnmatchcase

        if may_be_key(path):
            return True
        known = (*_ANYWHERE, *(f"{places.where.home}/{name}" for name in _SINGLE))
        if any(fnmatchcase(name, whole) for name in known):
            return True
    if whole.startswith("/proc/") and whole.endswith("/environ"):
        return True
    return whole.startswith(_ANYWHERE) or path.rpartition("/")[2] in KEYS


def is_environment_file(path: str) -> bool:
    """Whether a file of this name sets the environment's secrets; samples do not."""
    name = path.rpartition("/")[2]
    if name.startswith(".") and any(c in name for c in "*?["):
        from fnmatch import fnmatchcase

        return fnmatchcase(".env", name) or fnmatchcase(".env.local", name)
    return (name == ".env" or name.startswith(".env.")) and not name.endswith(_SAMPLES)


def judge_environment_file(path: str) -> None:
    """Refuse to read files that set the environment's secrets, or hold keys."""
    if is_environment_file(path):
        raise Refused(CREDENTIALS, f"{shown(path)} holds the environment's secrets")
    if is_key_file(path):
        raise Refused(CREDENTIALS, f"{shown(path)} holds a private key or secrets")


def _candidates(call: Call) -> list[str]:
    """Words that may name a file to read, also in `key=path` and `@path`."""
    words = (
        call.args[1:] if call.name in _PATTERNS and call.value("-e", "-f") is None else call.args
    )
    if call.name in ("cp", "mv", "ln", "install") and len(words) > 1:
        words = words[:-1]
    flagged = [w.partition("=")[2] for w in call.words if w[:1] == "-" and "=" in w]
    split = [w.partition("=")[2].lstrip("@") for w in words if "=" in w]
    return [w.removeprefix("@").removeprefix("file://") for w in words] + split + flagged


def _reads(call: Call) -> bool:
    if call.name in _NAMERS:
        return False
    for path in _candidates(call):
        if VAULT in path:
            raise Refused(CREDENTIALS, "it reads files that were found among credentials")
        judge_reading(path, call.places, call.state.cwd)
        if is_environment_file(path) and _tells_few(call):
            continue
        if call.name in _PLAIN_READERS:
            judge_environment_file(path)
        elif call.name in _ENV_READERS and is_environment_file(path):
            raise Refused(CREDENTIALS, f"{shown(path)} holds the environment's secrets")
    return False


def _tells_few(call: Call) -> bool:
    """Of `.env`: one variable, here or further down the pipe, or nothing, when it is edited."""
    if call.strict:
        return False
    reader = call.state.reader
    passed_on = call.name == "cat" and bool(reader) and reads_few(_reader(call))
    edits = call.name in ("sed", "gsed") and call.has_letter("i", "efl")
    return passed_on or edits or reads_few(call)


def _reader(call: Call) -> Call:
    return Call(call.state.reader, call.state, call.places)


def _reads_home(call: Call) -> bool:
    """A whole home directory holds credentials too."""
    deep = call.has_letter("rRa") or call.name in ("rg", "ag", "ack", "zip", "rsync")
    packs = call.name == "tar" and ("c" in "".join(call.words[:1]) or call.has("--create"))
    if not (deep or packs):
        return False
    home = call.places.where.home
    found = [call.places.absolute(path, call.state.cwd) for path in _candidates(call) if path]
    return any(whole == home or is_below(home, whole) for whole in found)


def _looks_for_keys(call: Call) -> bool:
    """`find ~ -name 'id_rsa*'`; in the project one may look."""
    starts = [start for start in call.args[:1] if start]
    kinds = {call.places.kind(start, call.state.cwd) for start in starts}
    if OUTSIDE not in kinds:
        return False
    patterns = call.values("-name", "-iname", "-path")
    keys = (*KEYS, ".pem", ".key")
    return any(
        is_key_file(pattern)
        or is_environment_file(pattern)
        or may_be_key(pattern)
        or pattern.strip("*") == "credentials"
        or pattern.strip("*").startswith(keys)
        for pattern in filter(None, patterns)
    )


def _shows_environment(call: Call) -> bool:
    """`ps e`, which is not `ps -e`"""
    return any(word.isalpha() and "e" in word for word in call.words[:1])


def _makes_key(call: Call) -> bool:
    """`ssh-keygen` writes a key, in the home unless told otherwise."""
    if call.has_letter("lyFRBHi"):
        return False
    paths = call.clustered("f", "tbCNPm") or [f"{call.places.where.home}/.ssh/id"]
    kinds = {call.places.kind(path, call.state.cwd) for path in paths}
    return not kinds <= {FREE_PLACE, UNKNOWN}


def _jq_environment(call: Call) -> bool:
    program = f" {call.args[0]} " if call.args else ""
    return "$ENV " in program.replace("|", " ") or " env " in program.replace("|", " ")


def _prints_secret(call: Call) -> bool:
    return any(SECRET in word for word in call.words) or SECRET in (call.state.stdin or "")


def _prints_environment(call: Call) -> bool:
    if call.words and (call.name == "set" or not _only_print_flags(call)):
        return False
    return call.strict or not call.state.reader or not reads_few(_reader(call))


def _only_print_flags(call: Call) -> bool:
    return all(word in ("-0", "--null", "-p", "-x", "-px", "-xp") for word in call.words)


def _prints_named(call: Call) -> bool:
    return any(is_secret(word) for word in call.args)


RULES = (
    Rule(CREDENTIALS, "", "*", test=_reads),
    Rule(
        CREDENTIALS,
        "it prints a secret of the environment",
        " ".join(_PRINTERS),
        test=_prints_secret,
    ),
    Rule(
        CREDENTIALS,
        "it prints every variable of the environment; name the one you need",
        "printenv env export declare typeset set",
        test=_prints_environment,
    ),
    Rule(CREDENTIALS, "it prints a secret of the environment", "printenv", test=_prints_named),
    Rule(
        CREDENTIALS,
        "it reads the whole home directory, with all that is secret there",
        "grep egrep fgrep rg ag ack tar zip rsync cp",
        test=_reads_home,
    ),
    Rule(
        CREDENTIALS,
        "it looks for keys outside the project",
        "find gfind",
        test=_looks_for_keys,
    ),
    Rule(
        CREDENTIALS,
        "it shows the environment of every process; leave out the e",
        "ps",
        test=_shows_environment,
    ),
    Rule(CREDENTIALS, "it writes a key outside the project", "ssh-keygen", test=_makes_key),
    Rule(
        CREDENTIALS,
        "it prints every variable of the environment; name the one you need",
        "jq yq",
        test=_jq_environment,
    ),
    Rule(
        CREDENTIALS,
        "it would commit secrets that git ignores",
        "git",
        sub="add|stage",
        flags="--force",
        letters="f",
        test=lambda c: any(is_environment_file(p) or is_key_file(p) for p in c.subs[1:]),
    ),
    Rule(CREDENTIALS, "it prints a credential", "gh", sub="auth token"),
    Rule(
        CREDENTIALS,
        "it prints a credential",
        "gh",
        sub="auth status",
        flags="--show-token",
        letters="t",
    ),
    Rule(CREDENTIALS, "it changes or reads the repository's secrets", "gh", sub="secret"),
    Rule(
        CREDENTIALS,
        "it prints a credential",
        "gcloud",
        sub="auth print-access-token|print-identity-token|application-default",
    ),
    Rule(CREDENTIALS, "it prints a credential", "gcloud", sub="secrets versions access"),
    Rule(CREDENTIALS, "it prints a credential", "aws", sub="configure get|export-credentials|list"),
    Rule(
        CREDENTIALS,
        "it prints a credential",
        "aws",
        sub="sts get-session-token|assume-role|get-federation-token",
    ),
    Rule(
        CREDENTIALS,
        "it prints a credential",
        "aws",
        sub=(
            "secretsmanager|ssm get-secret-value|get-parameter|get-parameters"
            "|batch-get-secret-value"
        ),
    ),
    Rule(
        CREDENTIALS,
        "it prints a credential",
        "aws",
        sub="ecr get-login-password|get-authorization-token",
    ),
    Rule(CREDENTIALS, "it prints a credential", "az", sub="account get-access-token"),
    Rule(CREDENTIALS, "it prints a credential", "az", sub="keyvault secret"),
    Rule(
        CREDENTIALS,
        "it prints secrets of the cluster",
        "kubectl",
        sub="get|describe|edit secret|secrets",
    ),
    Rule(
        CREDENTIALS,
        "it prints the cluster's credentials",
        "kubectl",
        sub="config view",
        flags="--raw",
    ),
    Rule(CREDENTIALS, "it prints a credential", "vault", sub="read|kv|token|print|login"),
    Rule(CREDENTIALS, "it prints a credential", "op", sub="read|item|signin|document|inject"),
    Rule(
        CREDENTIALS,
        "it prints a credential",
        "pass gopass bw lpass secret-tool keyring doppler chamber",
    ),
    Rule(
        CREDENTIALS,
        "it prints a credential",
        "security",
        sub="find-generic-password|find-internet-password|dump-keychain|export",
    ),
    Rule(
        CREDENTIALS,
        "it prints a credential",
        "git",
        sub="credential|credential-store|credential-cache",
    ),
    Rule(CREDENTIALS, "it makes or prints a credential", "npm yarn pnpm", sub="token"),
    Rule(CREDENTIALS, "it prints a credential", "heroku", sub="auth:token|config|config:get"),
    Rule(
        CREDENTIALS,
        "it exports a secret key",
        "gpg gpg2",
        flags="--export-secret-keys --export-secret-subkeys",
    ),
)
