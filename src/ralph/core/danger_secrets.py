"""Rules about credentials, and about what leaves the machine."""

from ralph.core.danger_expand import is_secret
from ralph.core.danger_rule import CREDENTIALS, EXFILTRATION, EXPOSURE, Call, Refused, Rule
from ralph.core.shell_text import ANY, CODED, SECRET, names, shown, unknown

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
_KEYS = (
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials.json",
    ".git-credentials",
    ".netrc",
    ".pgpass",
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
_PRINTERS = names(
    "echo printf cat tee base64 xxd od hexdump head tail rev tr logger wall write env"
)
_SENDERS = names(
    "curl wget http https xh nc ncat netcat socat telnet mail mutt ssh scp dig nslookup host ping"
)
_LOCAL: tuple[str, ...] = ("localhost", "127.", "[::1]", "::1", "host.docker.internal")
_LOCAL += ("0.0.0.0",)  # noqa: S104  for a client it is this machine
_UPLOADS = ("-T", "--upload-file", "--post-file", "--body-file")
_DATA = (
    "-d",
    "--data",
    "--data-binary",
    "--data-raw",
    "--data-urlencode",
    "--data-ascii",
    "-F",
    "--form",
    "--json",
    "--post-data",
    "--form-string",
    "--body-data",
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

        known = (*_ANYWHERE, *(f"{places.where.home}/{name}" for name in _SINGLE))
        if any(fnmatchcase(name, whole) for name in known):
            return True
    if whole.startswith("/proc/") and whole.endswith("/environ"):
        return True
    return whole.startswith(_ANYWHERE) or path.rpartition("/")[2] in _KEYS


def is_environment_file(path: str) -> bool:
    """Whether a file of this name sets the environment's secrets; samples do not."""
    name = path.rpartition("/")[2]
    return (name == ".env" or name.startswith(".env.")) and not name.endswith(_SAMPLES)


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
        judge_reading(path, call.places, call.state.cwd)
        if call.name in _ENV_READERS and is_environment_file(path):
            raise Refused(CREDENTIALS, f"{shown(path)} holds the environment's secrets")
    return False


def _prints_secret(call: Call) -> bool:
    return any(SECRET in word for word in call.words) or SECRET in (call.state.stdin or "")


def _prints_environment(call: Call) -> bool:
    return not call.words or all(
        word in ("-0", "--null", "-p", "-x", "-px", "-xp") for word in call.words
    )


def _prints_named(call: Call) -> bool:
    return any(is_secret(word) for word in call.args)


def _is_local(call: Call) -> bool:
    """Whether every address is this machine."""
    found = [word for word in call.args if "://" in word or word.startswith(_LOCAL)]
    hosts = [word.partition("://")[2] or word for word in found]
    return bool(hosts) and all(host.rpartition("@")[2].startswith(_LOCAL) for host in hosts)


def _uploads(call: Call) -> bool:
    if _is_local(call):
        return False
    data = [call.value(flag) for flag in _DATA]
    sent = [text for text in data if text]
    files = any(text[:1] == "@" or "=@" in text or "=<" in text for text in sent)
    what = any(CODED in text or ANY in text for text in sent)
    return files or what or any(call.value(flag) is not None for flag in _UPLOADS)


def _hidden_in_address(call: Call) -> bool:
    return any(CODED in word or SECRET in word for word in call.words)


def _talks(call: Call) -> bool:
    """`nc host port` with something to send; looking whether a port is open is fine."""
    if call.has_letter("z", "wpsx") or _is_local(call):
        return False
    return bool(call.args)


def _copies_away(call: Call) -> bool:
    target = call.args[-1] if call.args else ""
    return ":" in target and not target.startswith(("/", "./")) and not target.startswith(_LOCAL)


def _asks_by_name(call: Call) -> bool:
    return any(unknown(word) and "." in word for word in call.args)


def _forwards(call: Call) -> bool:
    return call.has_letter("R", "iploFJLDW")


RULES = (
    Rule(CREDENTIALS, "", "*", test=_reads),
    Rule(
        CREDENTIALS,
        "it prints a secret of the environment",
        " ".join(_PRINTERS),
        test=_prints_secret,
    ),
    Rule(
        EXFILTRATION,
        "it sends a secret of the environment",
        " ".join(_SENDERS),
        test=_prints_secret,
    ),
    Rule(
        CREDENTIALS,
        "it prints every variable of the environment; name the one you need",
        "printenv env export declare typeset set",
        test=_prints_environment,
    ),
    Rule(CREDENTIALS, "it prints a secret of the environment", "printenv", test=_prints_named),
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
    Rule(
        EXFILTRATION,
        "it uploads what a file or a command holds",
        "curl wget http https xh",
        test=_uploads,
    ),
    Rule(
        EXFILTRATION,
        "what a command has encoded or printed stands in the address",
        " ".join(_SENDERS),
        test=_hidden_in_address,
    ),
    Rule(
        EXFILTRATION,
        "it sends what it reads to another machine",
        "nc ncat netcat telnet socat ftp tftp sftp",
        test=_talks,
    ),
    Rule(EXFILTRATION, "it copies files to another machine", "scp rsync rclone", test=_copies_away),
    Rule(
        EXFILTRATION,
        "a name that nobody knows can carry data out",
        "dig nslookup host drill ping",
        test=_asks_by_name,
    ),
    Rule(EXFILTRATION, "it sends mail", "mail mailx mutt sendmail msmtp swaks"),
    Rule(
        EXFILTRATION,
        "it publishes what it reads",
        "pastebinit gist transfer croc wormhole magic-wormhole ffsend termbin",
    ),
    Rule(EXFILTRATION, "it publishes a file", "gh", sub="gist create|edit"),
    Rule(
        EXPOSURE,
        "it opens a way into this machine",
        "ngrok cloudflared localtunnel lt bore frpc tailscale zrok",
    ),
    Rule(EXPOSURE, "it opens a way into this machine", "ssh autossh", test=_forwards),
)
