#!/bin/sh
# The smallest coder there is: it reads its prompt, changes a file, commits and hands in.
# A real one is called the same way: add_agent my-coder --role coder -- /path/to/this/file {prompt}
set -eu
prompt=$1
title=$(sed -n 's/^# Task [^:]*: //p' "$prompt" | head -n 1)
test -n "$title" || { echo READY; exit 0; }  # check_agent asks without a task
printf -- '- %s\n' "$title" >> DONE.md
git add DONE.md
git commit -q -m "docs: $title"
# One row for each finding of the last review, if there was one.
response=$TMPDIR/response.md
echo "Wrote it down in DONE.md." > "$response"
sed -n 's/^### [0-9]*\. \(ISSUE-R[0-9]*-[0-9]*\).*/| \1 | addressed | done |/p' "$prompt" >> "$response"
steroids tasks update --status review --response "$response"
