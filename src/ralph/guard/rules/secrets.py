"""Rules about credentials: in files, in the environment, and those that programs hand out.

To read one variable of the environment or of `.env` is fine, unless it may hold a secret. Only
forms that are known to tell no more are believed.
"""

import re

from ralph.guard.follow.state import State
from ralph.guard.paths import FREE_PLACE, OUTSIDE, UNKNOWN, is_below
from ralph.guard.rules.rule import Call, Refused, positional, rules
from ralph.guard.shell.text import ANY, NAMED, SECRET, VAULT, fits, names, shown, unknown

# Below the home directory: whole directories end with a slash.
_AT_HOME = (
    *names(
        ".ssh/id_ .ssh/* .aws/ .gnupg/ .netrc .npmrc .pypirc .docker/config.json .kube/ .azure/"
        " .git-credentials .config/gh/ .config/gcloud/ .claude/.credentials .claude.json .s3cfg"
        " .codex/auth .gemini/oauth .config/op/ .password-store/ .vault-token .cargo/credentials"
        " .gem/credentials .config/hub .pgpass .my.cnf .terraform.d/cred .config/rclone .mozilla/"
        " .local/share/keyrings .config/google-chrome Library/Keychains .bash_history .zsh_history"
        " .local/share/opencode/auth .config/git/credentials .m2/settings .config/glab-cli/"
        " .config/ralph/"
    ),
    *(f".ssh/{ANY}", f".ssh/{NAMED}"),
)
_ANYWHERE = (
    *("/etc/shadow", "/etc/gshadow", "/etc/passwd", "/etc/sudoers"),
    *("/etc/ssh/ssh_host_", "/run/secrets/"),
)
_SINGLE = (".ssh/id_rsa", ".ssh/id_ed25519", ".aws/credentials", ".netrc", ".npmrc")
_SAMPLES = (".example", ".sample", ".template", ".dist", ".test", ".defaults", ".schema", ".ci")
_KEYS = (
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"),
    *("credentials.json", ".git-credentials", ".netrc", ".pgpass"),
)
_KEY_ENDINGS = names("key p12 pfx jks keystore kdbx ppk p8")
_SECRET_STEMS = names("secrets secret credentials .secrets")
# Commands whose words only name a file, and commands whose first word is a pattern.
_NAMERS = names(
    "echo printf ls test [ stat touch mkdir file cd find fd which git gh rm rmdir ssh-keygen"
    " ssh-add ssh du basename dirname realpath readlink export chmod chown docker docker-compose"
    " podman code make npm yarn pnpm node dotenv source . exit return true false : set unset kill"
    " gpg"
)
_PATTERNS = names("grep egrep fgrep rg ag ack sed gsed awk gawk mawk perl jq yq")
_PLAIN_READERS = names(
    "cat bat head tail less more grep egrep fgrep rg ag sed gsed awk gawk cut strings xxd od"
    " hexdump base64 tac nl view vim vi nano sort uniq jq yq diff paste column fold fmt pr expand"
    " unexpand rev join comm shuf split csplit sdiff colordiff batcat most iconv ack mawk nawk"
)
# Of what these read only the files of the environment count.
_ENV_READERS = names("cp mv scp rsync curl wget tar zip gzip nc dd tee python python3")
# What tells one variable, or none.
_SECRETS = names("KEY TOKEN SECRET SECRETS PASSWORD PASSWD PAT CREDENTIALS")
_NOT_SECRET = names("PATH FILE DIR ID NAME LENGTH TYPE COUNT URL")
_NAME = r"[A-Za-z_][A-Za-z0-9_]+"
# One name or several, of a whole variable (`^NAME=`) or of its beginning.
_PATTERN = rf"(\^?)\\?\(?({_NAME}(?:\\?\|\^?{_NAME})*)\\?\)?(=?)(?:\.\*)?"
_ONLY_NAMES = names("^[^=]* ^[^=]+ ^[A-Z_]* ^[A-Z_]+ ^[A-Z0-9_]* ^[A-Z0-9_]+")
_GREP_FLAGS = r"-[iEFPnowhHsx]+|--(?:ignore-case|word-regexp|only-matching|no-filename)"
_TELL_LITTLE = r"-[iEFPsqclL]*[qcl][iEFPsqclL]*|--(?:quiet|silent|count|files-with-matches)"
_SED = rf"(?:/\^?({_NAME})=?/p|s([/|,#])\^?({_NAME})=(?:\\?\(\.\*\\?\))?\2(?:\\1)?\2p)"
_PRINT = r"\{\s*print[^{}]*\}"
_AWK = rf"/\^?({_NAME})=?/\s*(?:{_PRINT})?|\$1\s*==\s*\"({_NAME})\"\s*{_PRINT}"
# Words that stand in names of secrets, or of accounts whose every variable may be one.
_TELLING = (
    r"KEY|TOKEN|SECRET|PASS|PWD|CRED|AUTH|JWT|PRIVATE|DSN|CERT|SALT|_UR[LI]|WEBHOOK|SIGN|API"
    r"|^(?:AWS|AZURE|GCP|GOOGLE|GH|GITHUB|GITLAB|ANTHROPIC|OPENAI|GEMINI|STRIPE|TWILIO|SLACK|HF"
    r"|SENTRY|DB|DATABASE|PG|MYSQL|REDIS|MONGO|SMTP|MAIL|S3|CLOUDFLARE|HEROKU|VAULT|NPM)$"
)
# What prints files although that is not its first purpose.
_PRINTS = names("show cat-file diff difftool blame annotate grep archive format-patch")
# They print what files hold only if they are told to.
_LISTS = names("log whatchanged diff-tree diff-index diff-files")
_ONLY_PATHS = names("--stat --name-only --name-status --numstat --shortstat --no-patch --quiet")
# Flags that take the next word, where that could look like a path.
_GIT_VALUED = names("-S -G --grep --author --output --prefix --format")
_EXCLUDES = (":!", ":^", ":(exclude", ":(top,exclude")
_JQ_ALL = r"\$ENV(?:[ |]|$)|(?:^|[ |])env(?:[ |]|$)"
_JQ_NAMED = (
    r"(?:\$ENV|(?<![.\w$])env)\s*(?:\.\s*\"?|\.?\[\s*\")(\w+)"
    r"|\benv\s*\(\s*(\w+)|strenv\s*\(\s*(\w+)"
)


def judge_reading(path: str, state: State) -> None:
    """Refuse to read what holds credentials."""
    if is_credential(path, state):
        raise Refused("credentials", f"{shown(path)} holds credentials")


def is_credential(path: str, state: State) -> bool:
    """True if the file is known to hold credentials; samples and public keys are not."""
    if path.endswith(".pub") or unknown(state.cwd) or path.startswith("-"):
        return False
    where, whole = state.where, state.whole(path)
    home = where.at_home(whole)
    if home and (home.startswith(_AT_HOME) or f"{home}/" in (".ssh/", *_AT_HOME)):
        return True
    if any(c in whole for c in "*?["):
        known = (*_ANYWHERE, *(f"{where.home}/{name}" for name in _SINGLE))
        if may_be_key(path) or any(fits(name, whole) for name in known):
            return True
    if whole.startswith("/proc/") and whole.endswith("/environ"):
        return True
    return whole.startswith(_ANYWHERE) or path.rpartition("/")[2] in _KEYS


def is_environment_file(path: str) -> bool:
    """True if a file of this name sets the environment's secrets; samples do not."""
    name = path.rpartition("/")[2]
    if name.startswith(".") and any(c in name for c in "*?["):
        return fits(".env", name) or fits(".env.local", name)
    return (name == ".env" or name.startswith(".env.")) and not name.endswith(_SAMPLES)


def judge_environment_file(path: str) -> None:
    """Refuse to read files that set the environment's secrets, or hold keys."""
    if is_environment_file(path):
        raise Refused("credentials", f"{shown(path)} holds the environment's secrets")
    if _is_key_file(path):
        raise Refused("credentials", f"{shown(path)} holds a private key or secrets")


def _is_key_file(path: str) -> bool:
    """True if the name of a file says that it holds a private key or secrets."""
    stem, _, ending = path.rpartition("/")[2].rpartition(".")
    if ending == "pem":
        return "key" in stem or "priv" in stem
    if ending in ("json", "yml", "yaml", "toml", "ini"):
        return stem in _SECRET_STEMS or stem.startswith(("service-account", "service_account"))
    return bool(stem) and ending in _KEY_ENDINGS


def may_be_key(path: str) -> bool:
    """True if a pattern looks for keys: `id_*`, `*_rsa`, `*/.ssh/*`; one that takes in very much,
    such as `*` or `*.json`, does not."""
    name = path.rpartition("/")[2]
    fixed = name.strip("*?")
    if "*" not in path and "?" not in path:
        return False
    if {".ssh", ".gnupg", ".aws"}.intersection(path.split("/")):
        return True
    if len(fixed) < 3 or "[" in name or (fixed[0] == "." and name[0] in "*?"):
        return False
    return any(fits(key, name) for key in _KEYS if not key.endswith(".json"))


def _candidates(call: Call) -> list[str]:
    """Words that may name a file to read, also in `key=path` and `@path`."""
    patterned = call.name in _PATTERNS and call.value("-e", "-f") is None
    words = call.args[1:] if patterned else call.args
    if call.name in ("cp", "mv", "ln", "install") and len(words) > 1:
        words = words[:-1]
    flagged = [w.partition("=")[2] for w in call.words if w[:1] == "-" and "=" in w]
    split = [w.partition("=")[2].lstrip("@") for w in words if "=" in w]
    return [w.removeprefix("@").removeprefix("file://") for w in words] + split + flagged


def _reads(call: Call) -> None:
    for path in _candidates(call) if call.name not in _NAMERS else ():
        if VAULT in path:
            raise Refused("credentials", "it reads files that were found among credentials")
        judge_reading(path, call.state)
        if is_environment_file(path) and _tells_few(call):
            continue
        if call.name in _PLAIN_READERS or (call.name in _ENV_READERS and is_environment_file(path)):
            judge_environment_file(path)


def _tells_few(call: Call) -> bool:
    """True if it tells one variable of `.env`, here or down the pipe, or edits the file."""
    if call.strict:
        return False
    edits = call.name in ("sed", "gsed") and call.has_letter("i", "efl")
    return edits or reads_few(call) or (call.name == "cat" and _reader_tells_few(call))


def _reader_tells_few(call: Call) -> bool:
    reader = call.state.reader
    return bool(reader) and reads_few(Call(reader, call.state))


def _reads_home(call: Call) -> bool:
    """A whole home directory holds credentials too."""
    deep = call.has_letter("rRa") or call.name in ("rg", "ag", "ack", "zip", "rsync")
    packs = call.name == "tar" and ("c" in "".join(call.words[:1]) or call.has("--create"))
    home = call.where.home
    found = [call.whole(path) for path in _candidates(call) if path] if deep or packs else []
    return any(whole == home or is_below(home, whole) for whole in found)


def _looks_for_keys(call: Call) -> bool:
    """`find ~ -name 'id_rsa*'`; in the project one may look."""
    if not any(start and call.kind(start) == OUTSIDE for start in call.args[:1]):
        return False
    return any(
        _is_key_file(pattern)
        or is_environment_file(pattern)
        or may_be_key(pattern)
        or pattern.strip("*") == "credentials"
        or pattern.strip("*").startswith((*_KEYS, ".pem", ".key"))
        for pattern in filter(None, call.values("-name", "-iname", "-path"))
    )


def _makes_key(call: Call) -> bool:
    """`ssh-keygen` writes a key, in the home unless told otherwise."""
    paths = call.clustered("f", "tbCNPm") or [f"{call.where.home}/.ssh/id"]
    outside = any(call.kind(path) not in (FREE_PLACE, UNKNOWN) for path in paths)
    return outside and not call.has_letter("lyFRBHi")


def _prints_environment(call: Call) -> bool:
    flags = all(word in ("-0", "--null", "-p", "-x", "-px", "-xp") for word in call.words)
    if call.words and (call.name == "set" or not flags):
        return False
    return call.strict or not _reader_tells_few(call)


def is_secret(name: str) -> bool:
    """True if an environment variable of this name holds a secret."""
    parts = name.split("_")
    if name != name.upper() or parts[-1] in _NOT_SECRET:
        return False
    return not _SECRETS.isdisjoint(parts) or name.endswith(("APIKEY", "PASSWORD", "TOKEN"))


def reads_few(call: Call) -> bool:
    """True if a command tells only variables that it names, or none, of what it reads."""
    if call.name in ("grep", "egrep", "fgrep", "rg", "ag"):
        return _greps_few(call)
    program = "".join(call.args[:1])
    flags = [word for word in call.words if word[:1] == "-"]
    if call.name in ("sed", "gsed"):
        found = re.fullmatch(_SED, program) if flags == ["-n"] else None
        name = found and (found[1] or found[3])
        names_only = not flags and program in ("s/=.*//", "s/=.*$//", "s/=.*//g")
    elif call.name in ("awk", "gawk", "mawk"):
        program = "".join(positional(call.words, ["-F", "-v"])[:1])
        found = re.fullmatch(_AWK, program.strip())
        name = found and (found[1] or found[2])
        names_only = program.replace(" ", "") == "{print$1}" and "=" in "".join(flags)
    elif call.name == "cut":  # `cut -d= -f1` tells the names
        given = sorted(call.clustered("d", "f") + call.clustered("f", "d"))
        return given == ["1", "="] and len(flags) == 2
    else:
        return call.name == "wc"
    return names_only or (name is not None and _is_harmless(name, whole=True))


def _greps_few(call: Call) -> bool:
    flags = [word for word in call.words if word[:1] == "-" and word != "-e"]
    pattern = (call.values("-e") or call.args[:1] or [""])[0]
    if flags and all(re.fullmatch(_TELL_LITTLE, flag) for flag in flags):
        return True
    if not all(re.fullmatch(_GREP_FLAGS, flag) for flag in flags):
        return False
    if pattern in _ONLY_NAMES and any("o" in flag for flag in flags):
        return True
    found = re.fullmatch(_PATTERN, pattern)
    if found is None:
        return False
    whole = bool(found[1] and found[3])
    several = re.findall(_NAME, found[2])
    return all(_is_harmless(name, whole=whole) for name in several)


def _is_harmless(name: str, *, whole: bool) -> bool:
    """True if a variable of this name holds no secret; one that only begins so may be another."""
    upper = name.upper().strip("_")
    return not is_secret(upper) and not re.search(_TELLING, upper if not whole else f"{upper}=")


def _judge_named(call: Call, path: str) -> None:
    path = call.expanded(path)
    judge_reading(path, call.state)
    judge_environment_file(path)


def _git_reads(call: Call) -> None:
    """`git show HEAD:.env`, `git log -p -- .env`; their names alone may be listed."""
    sub = "".join(call.subs[:1])
    words = call.words[call.words.index(sub) + 1 :] if sub else []
    if sub == "config":
        for path in Call(["config", *words], call.state).values("-f", "--file"):
            _judge_named(call, path)
    if not _shows(sub, Call(["git", *words], call.state)):
        return
    given = positional(words, ["-e", "-f"] if sub == "grep" else _GIT_VALUED)
    patterned = sub == "grep" and not any(word[:2] in ("-e", "-f") for word in words)
    ranges = [word for word in words if word.startswith("-L")]
    for word in [*given[patterned:], *ranges]:
        if not word.startswith(_EXCLUDES):
            _judge_named(call, word.rpartition(":")[2].rpartition(")")[2])


def _shows(sub: str, call: Call) -> bool:
    patch = bool(call.given("--patch --cc --patch-with-stat -p -u -L -c/SGn"))
    if sub in _LISTS:
        return patch
    if sub == "cat-file" and call.has_letter("ets"):
        return False  # whether there is such a file, its type or size
    blob = any(":" in word and not word.startswith(_EXCLUDES) for word in call.args)
    return sub in _PRINTS and (patch or blob or not call.has(*_ONLY_PATHS))


def _editor_reads(call: Call) -> None:
    """A file to edit, or one that a command of the editor names."""
    read = call.state.stdin if call.name in ("ed", "ex", "red") else None
    for word in [*call.words, read or ""]:
        for piece in re.split(r"[\s|'\"()<;,]+", word):
            _judge_named(call, piece)


def _container_reads(call: Call) -> None:
    """`docker run --env-file .env`; compose reads that file by itself."""
    if call.subs[:1] != ["compose"] and {"run", "create", "exec"}.intersection(call.subs[:2]):
        for path in call.values("--env-file"):
            _judge_named(call, path)


RULES = rules(
    """\
credentials:
    * (reads)
credentials: it prints a secret of the environment
    echo|printf|cat|tee|base64|xxd|od|hexdump|head|tail|rev|tr|logger|wall|write|env (prints secret)
credentials: it prints every variable of the environment; name the one you need
    printenv|env|export|declare|typeset|set (prints environment)
    jq|yq (jq environment)
credentials: it prints a secret of the environment
    printenv (prints named)
credentials: it reads the whole home directory, with all that is secret there
    grep|egrep|fgrep|rg|ag|ack|tar|zip|rsync|cp (reads home)
credentials: it looks for keys outside the project
    find|gfind (looks for keys)
credentials: it shows the environment of every process; leave out the e
    ps (shows environment)
credentials: it writes a key outside the project
    ssh-keygen (makes key)
credentials: it would commit secrets that git ignores
    git add|stage --force -f (_secrets)
credentials: it prints a credential
    gh auth token
    gh auth status --show-token -t
    glab auth status --show-token -t
    glab config get token
    gcloud auth print-access-token|print-identity-token|application-default
    gcloud secrets versions access
    aws configure get|export-credentials|list
    aws sts get-session-token|assume-role|get-federation-token
    aws secretsmanager|ssm get-secret-value|get-parameter|get-parameters|batch-get-secret-value
    aws ecr get-login-password|get-authorization-token
    az account get-access-token
    az keyvault secret
    vault read|kv|token|print|login
    op read|item|signin|document|inject
    pass|gopass|bw|lpass|secret-tool|keyring|doppler|chamber
    security find-generic-password|find-internet-password|dump-keychain|export
    git credential|credential-store|credential-cache
    heroku auth:token|config|config:get
credentials: it changes or reads the repository's secrets
    gh secret
credentials: it prints secrets of the cluster
    kubectl get|describe|edit secret|secrets
credentials: it prints the cluster's credentials
    kubectl config view --raw
credentials: it makes or prints a credential
    npm|yarn|pnpm token
credentials: it exports a secret key
    gpg|gpg2 --export-secret-keys --export-secret-subkeys
""",
    *(_reads, _prints_environment, _reads_home, _looks_for_keys, _makes_key),
    jq_environment=lambda c: re.search(_JQ_ALL, "".join(c.args[:1])),
    prints_secret=lambda c: any(SECRET in text for text in c.texts),
    prints_named=lambda c: any(map(is_secret, c.args)),
    # `ps e`, which is not `ps -e`
    shows_environment=lambda c: any(w.isalpha() and "e" in w for w in c.words[:1]),
    _secrets=lambda c: any(is_environment_file(p) or _is_key_file(p) for p in c.subs[1:]),
)
# Asked after all others, which have more to say about what is changed.
LAST_RULES = rules(
    """\
credentials:
    git (git reads)
    vim|vi|nvim|view|vimdiff|ex|ed|red|nano|pico|emacs|emacsclient|micro|hx|kak|joe (editor reads)
    docker|podman|nerdctl (container reads)
credentials: it prints a secret of the environment
    jq|yq|gojq|jaq (jq names)
""",
    *(_git_reads, _editor_reads, _container_reads),
    jq_names=lambda c: any(
        is_secret(name)
        for word in c.args
        for match in re.findall(_JQ_NAMED, word)
        for name in filter(None, match)
    ),
)
