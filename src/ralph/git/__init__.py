"""Asks git and commits with it: the repository, its status, its work tree.

Public: `repository`, `status`, `view`, `digest`, `ignore`, `branch`, `path_commit`, `uncommitted`,
`under_way`, `submodules`, `scm`; `checkpoint` goes back.
"""
