"""GitHub, and GitHub Enterprise, by the REST API."""

import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote, urlencode

from ralph.errors import ForgeError
from ralph.forge.answers import (
    each_once,
    end_of_log,
    entry,
    name_of,
    names,
    number,
    objects,
    same,
    sendable,
    text,
    title_of,
)
from ralph.forge.http import Service
from ralph.forge.port import (
    MOST_ISSUES,
    Check,
    CheckState,
    Project,
    Proposal,
    Pull,
    PullState,
)
from ralph.kernel.value import replace, value
from ralph.text.plain import plain

Json = dict[str, Any]
HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
LOGIN = "Type: gh auth login, or set GITHUB_TOKEN"
RIGHTS = (
    "the scope repo, as that of gh auth login or a classic one; a fine-grained one needs Contents, "
    "Pull requests and Issues to write, and may not be able to read check runs at all"
)
_ENDED = {
    "success": CheckState.PASSED,
    "neutral": CheckState.NEUTRAL,
    "skipped": CheckState.SKIPPED,
}  # failed, with all other conclusions
_STATUSES = {"success": CheckState.PASSED, "pending": CheckState.PENDING}
_TAIL = 1 << 18  # bytes of a log
_ACTIONS = "github-actions"
_REFUSED = (400, 403, 404, 410, 422)
# After which it may be there: it was made without an answer, or by somebody else meanwhile.
_UNCLEAR = (0, 422, *range(500, 600))
_GONE_ON = "Base branch was modified"  # what GitHub says where trying again helps


@value
class GitHub:
    """One repository at GitHub; issues are those of any."""

    service: Service
    repository: str  # owner/name
    name = "GitHub"

    @property
    def _here(self) -> str:
        return f"repos/{quote(self.repository)}"

    # ---------------------------------------------------------------- pull requests

    def project(self) -> Project:
        found = self.service.get(self._here)
        url = text(found, "html_url")
        return Project(text(found, "full_name"), text(found, "default_branch"), url)

    def find(self, branch: str) -> Pull | None:
        found = self._opened(Proposal(branch, base="", title="", body=""))
        return None if found is None else _pull(found)

    def put(self, proposal: Proposal) -> Pull:
        title, body = title_of(proposal.title), sendable(proposal.body)
        proposal = replace(proposal, title=title, body=body)
        found = self._opened(proposal)
        if found is None:
            try:
                found = self._post(proposal)
            except ForgeError as error:
                found = self._opened(proposal) if error.status in _UNCLEAR else None
                if found is None:
                    raise
        found = self._patched(found, proposal)
        return replace(
            _pull(found), refused=(*self._label(found, proposal), *self._ask(found, proposal))
        )

    def pull(self, number: int) -> Pull:
        found = self.service.get(f"{self._here}/pulls/{number}")
        return _pull(entry(found, "number", "pull request"))

    def comment(self, number: int, text: str) -> None:
        self._say(self.repository, str(number), text)

    def merge(self, number: int, commit: str, method: str) -> None:
        place = f"{self._here}/pulls/{number}"
        try:
            self.service.ask("PUT", f"{place}/merge", {"sha": commit, "merge_method": method})
        except ForgeError as error:
            if error.status not in (404, 405, 409, 422):
                raise
            if self.pull(number).state is PullState.MERGED:
                return
            raise _not_merged(error, number, commit) from None

    def _opened(self, proposal: Proposal) -> Json | None:
        """The pull request that is open for a branch of this very repository."""
        owner = self.repository.partition("/")[0]
        query = urlencode({"head": f"{owner}:{proposal.branch}", "state": "open", "per_page": 100})
        ours = [
            one
            for page in self.service.pages(f"{self._here}/pulls?{query}")
            for one in objects(page)
            if text(one, "head", "ref") == proposal.branch
            and text(one, "head", "repo", "full_name").lower() in ("", self.repository.lower())
        ]
        ours.sort(
            key=lambda one: (text(one, "base", "ref") != proposal.base, number(one, "number"))
        )
        return ours[0] if ours else None

    def _post(self, proposal: Proposal) -> Json:
        body: Json = {"title": proposal.title, "body": proposal.body, "head": proposal.branch}
        body |= {"base": proposal.base} | ({"draft": True} if proposal.draft else {})
        found = self.service.ask("POST", f"{self._here}/pulls", body).found
        return entry(found, "number", "pull request")

    def _patched(self, found: Json, proposal: Proposal) -> Json:
        """Let it say what was proposed. Whether it is a draft is left to people from then on."""
        changes: Json = {}
        if text(found, "title") != proposal.title:
            changes["title"] = proposal.title
        if not same(text(found, "body"), proposal.body):
            changes["body"] = proposal.body
        if text(found, "base", "ref") != proposal.base:
            changes["base"] = proposal.base
        if changes:
            place = f"{self._here}/pulls/{number(found, 'number')}"
            found = entry(self.service.ask("PATCH", place, changes).found, "number", "pull request")
        return found

    def _label(self, found: Json, proposal: Proposal) -> Iterator[str]:
        """Add the labels that it has not; those that were refused."""
        have = {name.lower() for name in names(found, "labels", "name")}
        wanted = [name for name in proposal.labels if name.lower() not in have]
        place = f"{self._here}/issues/{number(found, 'number')}/labels"
        yield from self._offer(place, "labels", wanted)

    def _ask(self, found: Json, proposal: Proposal) -> Iterator[str]:
        """Ask for the reviews that nobody was asked for or has given; those that were refused."""
        place = f"{self._here}/pulls/{number(found, 'number')}"
        asked = {name.lower() for name in names(found, "requested_reviewers", "login")}
        teams = {name.lower() for name in names(found, "requested_teams", "slug")}
        people = [n for n in proposal.reviewers if "/" not in n and n.lower() not in asked]
        if people:
            done = [one for page in self._some(f"{place}/reviews") for one in objects(page)]
            gave = {text(one, "user", "login").lower() for one in done}
            people = [name for name in people if name.lower() not in gave]
        slugs = [n.rpartition("/")[2] for n in proposal.reviewers if "/" in n]
        slugs = [slug for slug in slugs if slug.lower() not in teams]
        place = f"{place}/requested_reviewers"
        yield from self._offer(place, "reviewers", people)
        yield from self._offer(place, "team_reviewers", slugs)

    def _offer(self, place: str, kind: str, wanted: list[str]) -> Iterator[str]:
        """Add names to a list; all at once, else one by one. Those that the forge refuses."""
        if not wanted:
            return
        try:
            self.service.ask("POST", place, {kind: wanted})
        except ForgeError as error:
            if error.status not in _REFUSED or error.retry_after is not None:
                raise
            if len(wanted) == 1:
                yield wanted[0]
                return
            for name in wanted:
                yield from self._offer(place, kind, [name])

    # ---------------------------------------------------------------- checks

    def checks(self, commit: str) -> tuple[Check, ...]:
        place = f"{self._here}/commits/{quote(commit)}"
        try:
            found = [*self._runs(place, commit), *self._statuses(place, commit)]
        except ForgeError as error:
            if error.status == 422:  # no commit found: it is too new for who answers
                return ()
            raise
        ended = not any(check.state in (CheckState.PENDING, CheckState.FAILED) for check in found)
        if found and ended:
            found += self._unfinished(place, commit)
        return each_once(found)

    def log(self, check: Check) -> str:
        kind, _, key = check.log.partition("/")
        if not key.isdecimal():
            return ""
        if kind == "job":
            try:
                place = f"{self._here}/actions/jobs/{key}/logs"
                if found := end_of_log(self.service.ask("GET", place, tail=_TAIL).body):
                    return found
            except ForgeError as error:
                if error.status not in (403, 404, 410) or error.retry_after is not None:
                    raise
        found = self.service.get(f"{self._here}/check-runs/{key}")
        parts = [text(found, "output", part) for part in ("title", "summary", "text")]
        return end_of_log("\n\n".join(filter(None, parts)).encode())

    def _runs(self, place: str, commit: str) -> Iterator[Check]:
        """The latest check run of each name in each suite, of this commit alone: an answer may
        come from a place that has not heard of the last push."""
        latest: dict[tuple[int, str], Json] = {}
        listed, told = set[int](), 0
        for page in self.service.pages(f"{place}/check-runs?filter=latest&per_page=100"):
            told = max(told, number(page, "total_count"))
            for run in objects(page, "check_runs"):
                listed.add(number(run, "id"))
                key = number(run, "check_suite", "id"), text(run, "name")
                newer = number(run, "id") >= number(latest.get(key), "id")
                if text(run, "head_sha") in ("", commit) and newer:
                    latest[key] = run
        yield from map(_check, latest.values())
        if len(listed) < told:  # they changed while they were listed
            said = f"{told} checks, and {len(listed)} were listed"
            yield Check("(not listed)", CheckState.PENDING, said=said)

    def _statuses(self, place: str, commit: str) -> Iterator[Check]:
        """What others say of this commit: the latest status of each context."""
        latest: dict[str, Json] = {}
        for page in self.service.pages(f"{place}/status?per_page=100"):
            if text(page, "sha") not in ("", commit):
                continue
            for status in objects(page, "statuses"):
                context = text(status, "context")
                if number(status, "id") >= number(latest.get(context), "id"):
                    latest[context] = status
        for status in latest.values():
            state = _STATUSES.get(text(status, "state"), CheckState.FAILED)
            said = plain(text(status, "description"))
            yield Check(name_of(status, "context"), state, text(status, "target_url"), said)

    def _unfinished(self, place: str, commit: str) -> Iterator[Check]:
        """The suites that are not at their end although all their runs are: a job that needs
        another has no run before that other one has ended."""
        for page in self._some(f"{place}/check-suites?per_page=100"):
            for suite in objects(page, "check_suites"):
                app = text(suite, "app", "slug")
                begun = number(suite, "latest_check_runs_count") or app == _ACTIONS
                is_open = text(suite, "status") != "completed" and begun
                if is_open and text(suite, "head_sha") == commit:
                    name = name_of(suite, "app", "name") or app
                    yield Check(f"({name})", CheckState.PENDING, said="more is to come")

    def _some(self, path: str) -> Iterator[object]:
        """The pages of what is good to know; none at a forge that only speaks like GitHub and has
        no such thing."""
        try:
            yield from self.service.pages(path)
        except ForgeError as error:
            if error.status not in (404, 410):
                raise

    # ---------------------------------------------------------------- issues

    def issues(self, repository: str, labels: tuple[str, ...], state: str = "open") -> str:
        plain_labels = [label for label in labels if "," not in label]  # a comma parts two labels
        odd = {label.lower() for label in labels} - {label.lower() for label in plain_labels}
        query = urlencode({"state": state, "labels": ",".join(plain_labels), "per_page": 100})
        found: dict[int, Json] = {}  # one that moved while they were listed may come twice
        for page in self.service.pages(f"repos/{quote(repository)}/issues?{query}"):
            for one in objects(page):
                have = {name.lower() for name in names(one, "labels", "name")}
                if "pull_request" not in one and odd <= have:
                    found.setdefault(number(one, "number"), _issue(one))
            if len(found) >= MOST_ISSUES:
                break
        return json.dumps([*found.values()][:MOST_ISSUES])

    def issue(self, repository: str, number: str) -> str:
        found = self.service.get(f"repos/{quote(repository)}/issues/{quote(number)}")
        return json.dumps([_issue(entry(found, "number", "issue"))])

    def turn(self, repository: str, number: str, *, done: bool, comment: str) -> None:
        self._say(repository, number, comment)
        body = {"state": "closed", "state_reason": "completed"} if done else {"state": "open"}
        self.service.ask("PATCH", f"repos/{quote(repository)}/issues/{quote(number)}", body)

    def _say(self, repository: str, number: str, words: str) -> None:
        """Comment on an issue or a pull request, if nobody has said just that."""
        words = sendable(words)
        place = f"repos/{quote(repository)}/issues/{quote(number)}/comments"

        def is_said() -> bool:
            pages = self._some(f"{place}?per_page=100")
            return any(same(text(one, "body"), words) for page in pages for one in objects(page))

        if is_said():
            return
        try:
            self.service.ask("POST", place, {"body": words})
        except ForgeError as error:
            if error.status in range(1, 500) or not is_said():
                raise


def _pull(found: object) -> Pull:
    state = PullState.OPEN if text(found, "state") == "open" else PullState.CLOSED
    return Pull(
        number(found, "number"),
        text(found, "html_url"),
        text(found, "head", "ref"),
        text(found, "base", "ref"),
        text(found, "head", "sha"),
        PullState.MERGED if text(found, "merged_at") else state,
    )


def _not_merged(error: ForgeError, number: int, commit: str) -> ForgeError:
    """Why a pull request was not merged, in words."""
    if error.status == 409:
        words = f"pull request {number} is not merged: its branch is not at {commit[:12]} any more"
        return ForgeError(words, "Look who pushed to it", status=409)
    later = 5.0 if _GONE_ON in error.message else error.retry_after
    words = f"pull request {number} is not merged: {error.message}"
    return ForgeError(words, "Look at it in a browser", status=error.status, retry_after=later)


def _check(run: Json) -> Check:
    conclusion = text(run, "conclusion")
    state = _ENDED.get(conclusion, CheckState.FAILED)
    ended = text(run, "status") == "completed" and conclusion  # which may come a moment later
    state = state if ended else CheckState.PENDING
    title = plain(text(run, "output", "title"))
    usual = ("success", "failure", "")
    said = ": ".join(filter(None, ("" if conclusion in usual else conclusion, title)))
    kind = "job" if text(run, "app", "slug") in ("", _ACTIONS) else "run"
    # The check run of an Actions job has the job's number.
    log = f"{kind}/{number(run, 'id')}"
    url = text(run, "html_url") or text(run, "details_url")
    return Check(name_of(run, "name"), state, url, said.replace("_", " "), log)


def _issue(found: Json) -> Json:
    """An issue as `gh` shows it, in its order: that is what our format reads and tasks remember."""
    milestone = found.get("milestone")
    issue = {
        "number": number(found, "number"),
        "title": text(found, "title"),
        "body": text(found, "body"),
        "state": text(found, "state").upper(),
        "stateReason": text(found, "state_reason").upper(),
        "labels": [*_parts(found.get("labels"), "name", "description", "color")],
        "assignees": [*_parts(found.get("assignees"), "login")],
        "milestone": milestone
        and {
            "number": number(milestone, "number"),
            "title": text(milestone, "title"),
            "description": text(milestone, "description"),
            "dueOn": text(milestone, "due_on") or None,
        },
        "url": text(found, "html_url"),
        "createdAt": text(found, "created_at"),
        "updatedAt": text(found, "updated_at"),
        "closedAt": text(found, "closed_at") or None,
    }
    return dict(sorted(issue.items()))


def _parts(found: object, *keys: str) -> Iterable[Json]:
    for one in objects(found):
        yield {"id": text(one, "node_id")} | {key: text(one, key) for key in keys}
