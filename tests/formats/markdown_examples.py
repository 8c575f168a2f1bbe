"""Checklists as people have them."""

FIX_PLAN = """\
# Fix Plan

What is wrong, in the order of its weight.

## High Priority
- [ ] Fix the login
  The session is gone after a redirect.

  ```sh
  - [ ] not a task
  ```
- [x] Return 404 for unknown pages

## Medium Priority

- [ ] Fix the login of guests

## Low Priority
* [X] Spell the footer
+ [ ] Sort the imports

## Nice to Have
- [ ] Dark mode

## Completed
- [x] Project setup

## Notes
- not a box
"""

IMPLEMENTATION_PLAN = """\
# Implementation Plan

## Phase 1: storage
1. [x] T-001: Choose a database
2. [ ] **T-002** Write the schema
   After: T-001
3) [ ] US-3 - Load the fixtures

   Depends on: T-001, T-002

## Phase 2: interface
- [ ] Add tests
"""

NESTED = """\
# Ralph Tasks

- [/] Build the server
  - [x] Routes
  - [ ] Errors
    Say what to type next.
      - [ ] Words
- [ ] Release
\t- [ ] Changelog
"""

PLAN = """\
# Plan: search

## Overview
People find things.

## Validation Commands
- `go test ./...`
- `golangci-lint run`

### Task 1: Index
Files: `index.go`
- [x] write the index
- [ ] read it again
  - [ ] also from disk

### Task 2: Query
- [x] parse
- [x] rank

### Task 3: Explain

## Later
- [ ] Fuzzy search
"""
EXAMPLES = [FIX_PLAN, IMPLEMENTATION_PLAN, NESTED, PLAN]
