#!/bin/bash
# Stands in for the issue tracker's command line. Called as
#   fractary work comment create ISSUE --body BODY --json
# it keeps each call as a folder: issue, body, the run's state as it is on disk now, and whether its lock is free.
here=$(cd "$(dirname "$0")" && pwd)
post=$(mktemp -d "$here/../posts/$(date +%s%N).XXXX")
if [[ $# != 7 || "$1 $2 $3" != "work comment create" || $5 != --body || $7 != --json ]]; then
  printf '%q ' "$@" > "$post/unknown"
  exit 2
fi
printf '%s' "$4" > "$post/issue"
printf '%s' "$6" > "$post/body"
run=$(sed -n 's/^\*\*Workflow Run\*\*: `\([^`]*\)`$/\1/p' <<< "$6" | head -n 1)
state=$(find "$POSTER_WORK" -path "*/$run/state.json" | head -n 1)
cp "$state" "$post/state"
if flock --nonblock --exclusive "$state.lock" true; then echo free; else echo held; fi > "$post/lock"
url=$(cat "$here/url")
if [[ -n $url ]]; then
  printf '{"status": "success", "data": {"id": "77", "url": "%s"}}\n' "$url"
else
  word=$(cat "$here/error")
  printf '{"status": "error", "error": {"code": "%s", "message": "refused: %s"}}\n' "$word" "$word"
  exit 1
fi
