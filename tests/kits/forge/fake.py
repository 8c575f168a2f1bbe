"""The forge itself: what it knows, its server, and how it misbehaves."""

import hashlib
import json
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from kits.forge.pictures import Picture, Run

Json = dict[str, Any]
TOKEN = "a-token-of-the-fake-forge-0123456789"
WHEN = "2026-01-31T12:00:00Z"


@dataclass(frozen=True)
class Sent:
    """A request that came."""

    method: str
    path: str  # without its query
    query: Mapping[str, str]
    body: Any
    authorized: bool  # whether an Authorization header came, or another one with a token
    elsewhere: bool  # to the host of the logs


@dataclass(frozen=True)
class Reply:
    """An answer; `body` is sent as JSON unless it is text."""

    status: int = 200
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class PullRequest:
    """A pull request of the fake."""

    number: int
    branch: str
    base: str
    title: str
    body: str = ""
    draft: bool = False
    state: str = "open"  # or closed, merged
    labels: list[str] = field(default_factory=list)
    reviewers: list[str] = field(default_factory=list)
    teams: list[str] = field(default_factory=list)
    reviewed: list[str] = field(default_factory=list)  # who gave a review
    comments: list[str] = field(default_factory=list)
    home: str = ""  # the repository of its branch, if that is another one
    merged_as: str = ""  # the commit on its base
    method: str = ""
    last_head: str = ""  # when it was closed or merged


@dataclass
class Issue:
    """An issue of the fake; pull requests are none here."""

    number: int
    title: str
    body: str | None = ""
    state: str = "open"
    reason: str | None = None
    labels: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    repository: str = ""  # "": that of the forge


@dataclass
class Trouble:
    """What happens instead of an answer, so many times."""

    match: str  # in "METHOD /path"
    times: int
    reply: Reply | None  # None: the connection is cut
    delay: float = 0.0
    done: bool = False  # whether what was asked for is done all the same


class FakeForge:
    """Ends with `close`, or at the end of a `with`."""

    def __init__(
        self,
        bare: Path,
        *,
        repository: str = "acme/shop",
        kind: str = "github",
        public: bool = False,
        default_branch: str = "main",
    ) -> None:
        self.bare, self.repository, self.kind, self.public = bare, repository, kind, public
        self.default_branch = default_branch
        self.token = TOKEN
        self.pulls: list[PullRequest] = []
        self.issues: list[Issue] = []
        self.requests: list[Sent] = []
        self.users = ["alice", "bob", "carol"]
        self.teams = ["reviewers"]
        self.no_labels: list[str] = []  # that it refuses
        self.drafts = True  # whether it knows of drafts
        self.unchanged: list[str] = []  # what was asked for again, and was the same
        self.page = 100  # at most so many on one page, whatever is asked for
        self.lock = threading.RLock()
        self.logs: dict[int, str] = {}
        self.outputs: dict[int, Json] = {}  # of check runs
        self._scripts: dict[str, list[Sequence[Picture]]] = {}
        self._of_commit: dict[str, Sequence[Picture]] = {}
        self._looks: dict[str, int] = {}
        self._numbers: dict[tuple[str, int, int, str], int] = {}
        self._troubles: list[Trouble] = []
        self._last = 0
        self._servers = [_serve(self, elsewhere=False), _serve(self, elsewhere=True)]
        self.url, self.log_url = (f"http://127.0.0.1:{one.server_port}" for one in self._servers)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    @property
    def environ(self) -> dict[str, str]:
        """The variables by which it is found."""
        if self.kind == "gitlab":
            return {
                "CI_API_V4_URL": f"{self.url}/api/v4",
                "CI_PROJECT_PATH": self.repository,
                "GITLAB_TOKEN": self.token,
            }
        return {
            "GITHUB_API_URL": self.url,
            "GITHUB_REPOSITORY": self.repository,
            "GITHUB_TOKEN": self.token,
        }

    # ---------------------------------------------------------------- what tests say and ask

    def ci(self, where: str, *scripts: Sequence[Picture]) -> None:
        """The checks of a branch's commits, one script for each in the order of their coming; or of
        the one commit that is named. "*" is every branch that has no script of its own."""
        with self.lock:
            self._scripts[where] = list(scripts)

    def now(self, commit: str, picture: Picture) -> None:
        """From now on the checks of a commit look like this, whatever was said before."""
        with self.lock:
            self._of_commit[commit] = [picture]

    def trouble(
        self,
        match: str = "",
        *,
        times: int = 1,
        status: int = 0,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        delay: float = 0.0,
        done: bool = False,
    ) -> None:
        """From now on, as many times, requests that hold `match` ("PUT /repos", "check-runs") get
        this answer. A text is sent as it is; without a status the connection is cut, or with a
        delay the right answer comes late."""
        reply = Reply(status, {"message": "trouble"} if body is None else body, headers or {})
        with self.lock:
            self._troubles.append(Trouble(match, times, reply if status else None, delay, done))

    def pull(self, branch: str) -> PullRequest:
        """The newest pull request of a branch."""
        return next(one for one in reversed(self.pulls) if one.branch == branch)

    def issue(self, number: int) -> Issue:
        return next(one for one in self.issues if one.number == number)

    def asked(self, method: str, end: str = "") -> list[Sent]:
        """The requests of a method whose path ends with this."""
        return [s for s in self.requests if s.method == method and s.path.endswith(end)]

    def head(self, branch: str) -> str:
        """The commit of a branch in the repository; "" if there is none."""
        return self.git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", fails=True)

    def git(self, *words: str, fails: bool = False) -> str:
        """The output of git in the bare repository."""
        who = ["-c", "user.name=Fake forge", "-c", "user.email=fake@forge.invalid"]
        done = subprocess.run(
            ["git", "-C", str(self.bare), *who, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 or fails, done.stderr
        return done.stdout.strip()

    # ---------------------------------------------------------------- what it does

    def number(self) -> int:
        """The next number, of issues and pull requests alike."""
        taken = [one.number for one in self.pulls] + [one.number for one in self.issues]
        return max(taken, default=0) + 1

    def looked(self, commit: str, *, anew: bool) -> Picture:
        """What the checks of a commit look like now; `anew` begins another look."""
        script = self._script(commit)
        if anew:
            self._looks[commit] = self._looks.get(commit, -1) + 1
        look = max(0, self._looks.get(commit, 0))
        return script[min(look, len(script) - 1)] if script else ()

    def run_number(self, commit: str, run: Run) -> int:
        """The number of a run, which it keeps from look to look."""
        if not run.number:
            key = (commit, run.suite, 0, run.name)
            if key not in self._numbers:
                self._last += 1
                self._numbers[key] = 1000 + self._last
            number = self._numbers[key]
        else:
            number = run.number
        self.logs[number] = run.log
        return number

    def _script(self, commit: str) -> Sequence[Picture]:
        if commit not in self._of_commit:
            named = [commit, *self._branches(commit), "*"]
            scripts = next((self._scripts[n] for n in named if n in self._scripts), None)
            if not scripts:
                return ()
            self._of_commit[commit] = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        return self._of_commit[commit]

    def _branches(self, commit: str) -> list[str]:
        """The branches that a commit is at, then those that hold it."""
        form = "--format=%(refname:short)"
        at = self.git("for-each-ref", form, f"--points-at={commit}", "refs/heads", fails=True)
        within = self.git("for-each-ref", form, f"--contains={commit}", "refs/heads", fails=True)
        return list(dict.fromkeys([*at.split(), *within.split()]))

    def merged(self, pull: PullRequest, commit: str, method: str) -> bool:
        """Merge for real, in the bare repository; False where there is a conflict."""
        base = self.head(pull.base)
        tree = self.git("merge-tree", "--write-tree", base, commit, fails=True)
        if not tree or "\n" in tree:
            return False
        parents = ["-p", base, *(["-p", commit] if method == "merge" else [])]
        words = f"Merge pull request #{pull.number}: {pull.title}"
        pull.merged_as = self.git("commit-tree", tree, *parents, "-m", words)
        self.git("update-ref", f"refs/heads/{pull.base}", pull.merged_as, base)
        pull.state, pull.method, pull.last_head = "merged", method, commit
        if pull.base == self.default_branch:
            for issue in self.issues:
                closes = (f"{word} #{issue.number}" for word in ("closes", "fixes", "resolves"))
                lines = pull.body.lower().split("\n")
                if any(line.strip(" .") in closes for line in lines):
                    issue.state, issue.reason = "closed", "completed"
        return True

    def answer(self, handler: "_Handler", elsewhere: bool) -> None:
        """Answer a request, or misbehave."""
        parts = urlsplit(handler.path)
        length = int(handler.headers.get("content-length") or 0)
        body = json.loads(handler.rfile.read(length)) if length else None
        keys = ("authorization", "private-token", "job-token")
        authorization = next((handler.headers[key] for key in keys if key in handler.headers), "")
        sent = Sent(
            *(handler.command, parts.path, dict(parse_qsl(parts.query)), body),
            *(bool(authorization), elsewhere),
        )
        with self.lock:
            self.requests.append(sent)
            trouble = self._next_trouble(f"{sent.method} {sent.path}")
        if trouble is not None:
            time.sleep(trouble.delay)
            if trouble.reply is not None or not trouble.delay:
                if trouble.done:
                    self._reply(sent, authorization, elsewhere)
                handler.send(trouble.reply)
                return
        reply = self._reply(sent, authorization, elsewhere)
        if sent.method == "GET" and reply.status == 200 and not elsewhere:
            mark = f'W/"{hashlib.sha256(json.dumps(reply.body).encode()).hexdigest()}"'
            same = handler.headers.get("if-none-match") == mark
            self.unchanged += [sent.path] * same
            reply = Reply(
                304 if same else 200, None if same else reply.body, {**reply.headers, "ETag": mark}
            )
        handler.send(reply)

    def _next_trouble(self, what: str) -> Trouble | None:
        for trouble in self._troubles:
            if trouble.times > 0 and trouble.match in what:
                trouble.times -= 1
                return trouble
        return None

    def _reply(self, sent: Sent, authorization: str, elsewhere: bool) -> Reply:
        from kits.forge import github_api, gitlab_api  # which know this module

        with self.lock:
            if elsewhere:  # the storage of logs, which takes no token
                log = self.logs.get(int(sent.path.rpartition("/")[2]), "")
                return Reply(400, "no token here") if authorization else Reply(200, log)
            reads = sent.method == "GET" and self.public and not authorization
            if authorization.rpartition(" ")[2] != self.token and not reads:
                return Reply(401, {"message": "Bad credentials", "status": "401"})
            if self.kind == "gitlab":
                return gitlab_api.reply(self, sent)
            return github_api.reply(self, sent)


def paged(
    forge: FakeForge, sent: Sent, rows: Sequence[Any]
) -> tuple[Sequence[Any], dict[str, str]]:
    """One page of rows, and the headers that tell of the next one."""
    size = min(int(sent.query.get("per_page", 30)), forge.page)
    page = int(sent.query.get("page", 1))
    shown = rows[(page - 1) * size : page * size]
    more = page * size < len(rows)
    if forge.kind == "gitlab":
        return shown, {"X-Next-Page": str(page + 1) if more else "", "X-Page": str(page)}
    query = urlencode({**sent.query, "page": page + 1})
    link = f'<{forge.url}{sent.path}?{query}>; rel="next", <{forge.url}/last>; rel="last"'
    return shown, {"Link": link} if more else {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    forge: FakeForge
    elsewhere: bool

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _any(self) -> None:
        self.forge.answer(self, self.elsewhere)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815

    def send(self, reply: Reply | None) -> None:
        self.close_connection = True
        if reply is None:
            return
        text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
        data = b"" if reply.body is None else text.encode()
        self.send_response_only(reply.status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        headers["Date"] = self.date_time_string()
        for name, held in {**headers, "Connection": "close", **reply.headers}.items():
            self.send_header(name, held)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def _serve(forge: FakeForge, *, elsewhere: bool) -> ThreadingHTTPServer:
    handler = type("_Handler", (_Handler,), {"forge": forge, "elsewhere": elsewhere})
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


def newest_first(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=lambda one: -one.number)
