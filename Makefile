# Each target is short; what is longer stands in a script under tests/.

ifeq ($(HOME),)
HOME := $(or $(shell getent passwd "$$(id -u)" | cut -d: -f6),$(CURDIR)/.home)
endif
export HOME
export CGO_ENABLED := 0

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0

.PHONY: build run test race lint fmt bench crash clean

# The tag leaves out the library's manual writer, whose set-up costs every
# process of ours 2 ms, three in each exec.
build:
	go build -trimpath -tags urfave_cli_no_docs -buildvcs=$(if $(filter unknown,$(VERSION)),false,auto) -ldflags '-s -w -X main.buildVersion=$(VERSION)' -o bin/winkfs ./cmd/winkfs

run: build
	bash tests/run.sh bin/winkfs

test:
	bash tests/test.sh

race:
	CGO_ENABLED=1 go test -race $$(go list ./... | grep -v /tests/)

lint:
	bash tests/lint.sh $(STATICCHECK)

fmt:
	gofmt -w $$(git ls-files -co --exclude-standard '*.go')

bench: build
	go run ./tests/bench -winkfs bin/winkfs

crash: build
	WINKFS_BIN=$(CURDIR)/bin/winkfs WINKFS_REQUIRE=binary,fuse CRASH_RUNS=2000 go test -count=1 -timeout 6h -v ./tests/crash

clean:
	rm -rf bin
