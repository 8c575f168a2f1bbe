"""Names of files that hold private keys and other secrets, and patterns that look for them."""

from ralph.core.shell_text import names

KEYS = (
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials.json",
    ".git-credentials",
    ".netrc",
    ".pgpass",
)
_KEY_ENDINGS = names("key p12 pfx jks keystore kdbx ppk p8")
_SECRET_STEMS = names("secrets secret credentials .secrets")
_KEY_DIRECTORIES = names(".ssh .gnupg .aws")


def is_key_file(path: str) -> bool:
    """Whether the name of a file says that it holds a private key or secrets."""
    name = path.rpartition("/")[2]
    stem, _, ending = name.rpartition(".")
    if ending == "pem":
        return any(part in stem for part in ("key", "priv"))
    if ending in ("json", "yml", "yaml", "toml", "ini"):
        return stem in _SECRET_STEMS or stem.startswith(("service-account", "service_account"))
    return bool(stem) and ending in _KEY_ENDINGS


def may_be_key(path: str) -> bool:
    """Whether a pattern looks for keys: `id_*`, `*_rsa`, `*/.ssh/*`; one that takes in very much,
    such as `*` or `*.json`, does not."""
    name = path.rpartition("/")[2]
    fixed = name.strip("*?")
    if "*" not in path and "?" not in path:
        return False
    if not _KEY_DIRECTORIES.isdisjoint(path.split("/")):
        return True
    if len(fixed) < 3 or "[" in name or (fixed[0] == "." and name[0] in "*?"):
        return False
    from fnmatch import fnmatchcase

    return any(fnmatchcase(key, name) for key in KEYS if not key.endswith(".json"))
