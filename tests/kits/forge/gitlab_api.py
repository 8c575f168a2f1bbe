"""GitLab's REST API, as far as Ralph uses it; the shapes are those of its documentation."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from kits.forge.fake import WHEN, FakeForge, Issue, PullRequest, Reply, Sent, newest_first, paged
from kits.forge.pictures import Run, Status, Suites

Json = dict[str, Any]
NOT_FOUND = Reply(404, {"message": "404 Not Found"})
_STATUSES = {"failure": "failed", "error": "failed", "cancelled": "canceled"}
_RUNS = {"in_progress": "running", "queued": "pending"}


def reply(forge: FakeForge, sent: Sent) -> Reply:
    if not sent.path.startswith("/api/v4/"):
        return NOT_FOUND
    path = sent.path.removeprefix("/api/v4")
    if path == "/users":
        name = sent.query.get("username", "")
        people = [{"id": 70 + at, "username": one} for at, one in enumerate(forge.users)]
        return Reply(200, [one for one in people if one["username"] == name.lower()])
    found = re.fullmatch(r"/projects/([^/]+)(/.*)?", path)
    if found is None:
        return NOT_FOUND
    repository, rest = unquote(found[1]), found[2] or ""
    for method, pattern, answer in ROUTES:
        match = re.fullmatch(pattern, rest)
        known = repository == forge.repository or "issues" in pattern
        if method == sent.method and match and known:
            return answer(forge, sent, repository, *map(unquote, match.groups()))
    return Reply(404, {"message": "404 Project Not Found"})


# -------------------------------------------------------------------- project


def project(forge: FakeForge, sent: Sent, repository: str) -> Reply:
    return Reply(
        200,
        {
            "id": 35,
            "path_with_namespace": forge.repository,
            "default_branch": forge.default_branch,
            "web_url": f"https://gitlab.test/{forge.repository}",
        },
    )


# -------------------------------------------------------------------- merge requests


def shown(forge: FakeForge, pull: PullRequest) -> Json:
    return {
        "id": 100 + pull.number,
        "iid": pull.number,
        "web_url": f"https://gitlab.test/{forge.repository}/-/merge_requests/{pull.number}",
        "state": "opened" if pull.state == "open" else pull.state,
        "title": ("Draft: " if pull.draft else "") + pull.title,
        "description": pull.body or None,
        "draft": pull.draft,
        "source_branch": pull.branch,
        "target_branch": pull.base,
        "source_project_id": 36 if pull.home else 35,
        "target_project_id": 35,
        "labels": list(pull.labels),
        "reviewers": [
            {"id": 70 + forge.users.index(name), "username": name} for name in pull.reviewers
        ],
        "sha": pull.last_head or forge.head(pull.branch),
        "merge_commit_sha": pull.merged_as or None,
        "merged_at": WHEN if pull.state == "merged" else None,
        "merge_status": "can_be_merged",
        "detailed_merge_status": "draft_status" if pull.draft else "mergeable",
    }


def pulls(forge: FakeForge, sent: Sent, repository: str) -> Reply:
    state, source = sent.query.get("state", "all"), sent.query.get("source_branch")
    rows = []
    for pull in newest_first(forge.pulls):
        one = shown(forge, pull)
        if state in ("all", one["state"]) and source in (None, pull.branch):
            rows.append(one)
    found, headers = paged(forge, sent, rows)
    return Reply(200, found, headers)


def titled(pull: PullRequest, title: str) -> None:
    pull.draft = title.lower().startswith("draft:")
    pull.title = title[len("draft:") :].strip() if pull.draft else title


def open_pull(forge: FakeForge, sent: Sent, repository: str) -> Reply:
    body = sent.body
    source, target = body["source_branch"], body["target_branch"]
    for there in forge.pulls:
        same = (there.branch, there.base) == (source, target) and not there.home
        if there.state == "open" and same:
            words = "Another open merge request already exists for this source branch: "
            return Reply(409, {"message": [f"{words}!{there.number}"]})
    if not forge.head(target):
        words = f'Could not create target branch "{target}": it does not exist'
        return Reply(422, {"message": {"base": [words]}})
    if source == target:
        words = "You can't use same project/branch for source and target"
        return Reply(422, {"message": {"branch_conflict": [words]}})
    if len(body.get("description", "")) > 1_048_576:
        return Reply(400, {"message": {"description": ["is too long"]}})
    if len(body["title"]) > 255:
        return Reply(400, {"message": {"title": ["is too long (maximum is 255 characters)"]}})
    pull = PullRequest(forge.number(), source, target, "", body.get("description", ""))
    titled(pull, body["title"])
    forge.pulls.append(pull)
    return Reply(201, shown(forge, pull))


def pull_of(forge: FakeForge, number: str) -> PullRequest | None:
    return next((one for one in forge.pulls if one.number == int(number)), None)


def get_pull(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    pull = pull_of(forge, number)
    return Reply(200, shown(forge, pull)) if pull else NOT_FOUND


def change_pull(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    if not (pull := pull_of(forge, number)):
        return NOT_FOUND
    body = dict(sent.body)
    if "title" in body:
        titled(pull, body.pop("title"))
    pull.body = body.pop("description", pull.body)
    pull.base = body.pop("target_branch", pull.base)
    added = body.pop("add_labels", "")
    pull.labels = list(dict.fromkeys([*pull.labels, *filter(None, added.split(","))]))
    if "reviewer_ids" in body:
        pull.reviewers = [forge.users[n - 70] for n in body.pop("reviewer_ids")]
    assert not body, body
    return Reply(200, shown(forge, pull))


def merge(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    if not (pull := pull_of(forge, number)):
        return NOT_FOUND
    head = forge.head(pull.branch)
    if pull.state != "open" or pull.draft:
        return Reply(405, {"message": "405 Method Not Allowed"})
    if sent.body.get("sha", head) != head:
        return Reply(409, {"message": "SHA does not match HEAD of source branch"})
    if not forge.merged(pull, head, "squash" if sent.body.get("squash") else "merge"):
        return Reply(422, {"message": "Branch cannot be merged"})
    return Reply(200, shown(forge, pull))


# -------------------------------------------------------------------- checks


def statuses(forge: FakeForge, sent: Sent, repository: str, commit: str) -> Reply:
    if forge.git("cat-file", "-t", commit, fails=True) != "commit":
        return Reply(404, {"message": "404 Commit Not Found"})
    rows: list[Json] = []
    place = f"https://gitlab.test/{forge.repository}/-/jobs"
    for at, one in enumerate(forge.looked(commit, anew=sent.query.get("page", "1") == "1")):
        if isinstance(one, Run):
            number = forge.run_number(commit, one)
            name, said = one.name, one.conclusion or one.status or "created"
            state, allowed = _RUNS.get(said, said), one.allowed
            url, words = f"{place}/{number}", one.title
        elif isinstance(one, Status):
            number, name, state = one.number or 500 + at, one.context, one.state
            url, words, allowed = "https://ci.test/9", one.description, False
        else:
            continue
        rows.append(
            {
                "id": number,
                "name": name,
                "status": _STATUSES.get(state, state),
                "sha": one.sha or commit,
                "ref": "main",
                "target_url": url,
                "description": words or None,
                "allow_failure": allowed,
                "pipeline_id": 1,
            }
        )
    found, headers = paged(forge, sent, rows)
    return Reply(200, found, headers)


def pipelines(forge: FakeForge, sent: Sent, repository: str) -> Reply:
    commit = sent.query["sha"]
    picture = forge.looked(commit, anew=False)
    numbers = {n for one in picture if isinstance(one, Suites) for n in one.numbers}
    rows = [{"id": number, "sha": commit, "status": "running"} for number in sorted(numbers)]
    rows.append({"id": 99, "sha": commit, "status": "success"})
    found, headers = paged(forge, sent, rows)
    return Reply(200, found, headers)


def trace(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    log = forge.logs.get(int(number))
    return Reply(200, log, {"Content-Type": "text/plain"}) if log else NOT_FOUND


# -------------------------------------------------------------------- issues


def issue_of(forge: FakeForge, repository: str, number: str) -> Issue | None:
    for one in forge.issues:
        home = one.repository or forge.repository
        if one.number == int(number) and home == repository:
            return one
    return None


def issue_shown(repository: str, issue: Issue) -> Json:
    closed = issue.state == "closed"
    return {
        "iid": issue.number,
        "title": issue.title,
        "description": issue.body,
        "state": "closed" if closed else "opened",
        "labels": list(issue.labels),
        "web_url": f"https://gitlab.test/{repository}/-/issues/{issue.number}",
        "created_at": WHEN,
        "updated_at": WHEN,
        "closed_at": WHEN if closed else None,
    }


def issues(forge: FakeForge, sent: Sent, repository: str) -> Reply:
    state = sent.query.get("state", "all")
    wanted = {name for name in sent.query.get("labels", "").split(",") if name}
    ours = [one for one in forge.issues if (one.repository or forge.repository) == repository]
    rows = [issue_shown(repository, one) for one in newest_first(ours) if wanted <= {*one.labels}]
    rows = [one for one in rows if state in ("all", one["state"])]
    found, headers = paged(forge, sent, rows)
    return Reply(200, found, headers)


def get_issue(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    issue = issue_of(forge, repository, number)
    return Reply(200, issue_shown(repository, issue)) if issue else NOT_FOUND


def change_issue(forge: FakeForge, sent: Sent, repository: str, number: str) -> Reply:
    if not (issue := issue_of(forge, repository, number)):
        return NOT_FOUND
    issue.state = {"close": "closed", "reopen": "open"}[sent.body["state_event"]]
    return Reply(200, issue_shown(repository, issue))


def notes_of(
    forge: FakeForge, repository: str, kind: str, number: str
) -> PullRequest | Issue | None:
    return (issue_of(forge, repository, number) if kind == "issues" else None) or (
        pull_of(forge, number) if kind == "merge_requests" else None
    )


def notes(forge: FakeForge, sent: Sent, repository: str, kind: str, number: str) -> Reply:
    if not (target := notes_of(forge, repository, kind, number)):
        return NOT_FOUND
    rows = [{"id": at, "body": body} for at, body in enumerate(target.comments)]
    found, headers = paged(forge, sent, rows)
    return Reply(200, found, headers)


def add_note(forge: FakeForge, sent: Sent, repository: str, kind: str, number: str) -> Reply:
    if not (target := notes_of(forge, repository, kind, number)):
        return NOT_FOUND
    target.comments.append(sent.body["body"])
    return Reply(201, {"id": len(target.comments), "body": sent.body["body"]})


Answer = Callable[..., Reply]
ROUTES: list[tuple[str, str, Answer]] = [
    ("GET", "", project),
    ("GET", "/merge_requests", pulls),
    ("POST", "/merge_requests", open_pull),
    ("GET", r"/merge_requests/(\d+)", get_pull),
    ("PUT", r"/merge_requests/(\d+)", change_pull),
    ("PUT", r"/merge_requests/(\d+)/merge", merge),
    ("GET", r"/repository/commits/([0-9a-f]+)/statuses", statuses),
    ("GET", "/pipelines", pipelines),
    ("GET", r"/jobs/(\d+)/trace", trace),
    ("GET", "/issues", issues),
    ("GET", r"/issues/(\d+)", get_issue),
    ("PUT", r"/issues/(\d+)", change_issue),
    ("GET", r"/(issues|merge_requests)/(\d+)/notes", notes),
    ("POST", r"/(issues|merge_requests)/(\d+)/notes", add_note),
]
