#!/usr/bin/env bash
# Fails on what gofmt would change and on what go vet or staticcheck finds.
# The first argument is staticcheck's package at its version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

unformatted=$(gofmt -l $(git ls-files -co --exclude-standard '*.go'))
if [ -n "$unformatted" ]; then
  echo "gofmt would change:" >&2
  echo "$unformatted" >&2
  exit 1
fi
go vet ./...
go run "$1" ./...
