# The targets of thru. `make` lists them. POSIX sh and awk, GNU make.

GO          ?= go
VERSION     ?= $(shell .ci/version)
VERSION     := $(VERSION)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 20s
# The linux binary must stay under this many megabytes of 10^6 bytes.
SIZE_BUDGET := 48
LDFLAGS     := -s -w $(if $(VERSION),-X thru/internal/cli.Version=$(VERSION))
# One set of flags and libraries for all that lacks the race detector, so that what one target compiles the others find. No
# debug information, which the linker drops anyway: it takes a seventh of the compilers' CPU time.
NODEBUG     := -gcflags=all=-dwarf=false
PLAIN       := CGO_ENABLED=0 GOFLAGS='-trimpath $(NODEBUG)'
# Some libraries are changed, so that the binary is smaller and starts sooner.
SLIM        := -modfile=bin/slim.mod
# GOGC: garbage collection is a quarter of the compilers' CPU time.
BUILD       := GOGC=400 $(PLAIN) $(GO) build $(SLIM) -ldflags '$(LDFLAGS)'
# Systems that thru is built for.
CROSS       := linux/amd64 linux/arm64 freebsd/amd64 windows/amd64 darwin/arm64 solaris/amd64 illumos/amd64
# Where release writes to, and who answers for the packages.
DIST        ?= dist
MAINTAINER  ?= $(shell git log -1 --format='%an <%ae>')
# Systems that lint looks at.
SYSTEMS     := linux freebsd windows
# The race detector needs cgo; without a C compiler test-all runs without it.
RACE        := $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)
# Packages that start nothing beside themselves (arch_test.go): no race can be in them.
SEQUENTIAL  := . docs bench internal/access interop truth internal/cause/... internal/compare internal/doc/... internal/iperfdoc internal/measure \
	internal/nets internal/place internal/plan/... internal/published internal/report/... internal/runs internal/stat/... \
	internal/capture internal/capture/frame internal/capture/pcapfile internal/capture/trace internal/host/pcie internal/transfer/stage \
	internal/watch/judge internal/watch/record internal/watch/schedule
# Packages whose tests arm64 runs: system calls, what is read from the kernel, byte order. qemu-user 7.2 lacks what the tests
# that are left out need: TCP_INFO, TCP_SAVED_SYN, SO_TIMESTAMPNS and SO_MAX_PACING_RATE, netlink of sockets, devices and
# nftables, ETHTOOL, and calls whose buffer is shorter than their length (lean). It is too slow for 64 streams, for datagrams
# at a rate, and for the engines of iperf, whose peers keep time.
ARM64       := ./internal/sock ./internal/measure ./internal/engine/worker ./internal/capture ./internal/capture/frame \
	./internal/capture/pcapfile ./internal/capture/trace ./internal/host ./internal/host/pcie ./internal/path
ARM64_SKIP  := TestArrival|TestDiagFinds|TestTimelineOfA|TestRateIsHeldEitherDirection|TestContract/tcp/lean|TestContract/.*/.*/many_streams|TestAdopted/udp|TestLoopback$$|TestLook$$|TestQueuesOfLoopback|TestInterfacesAsIPSays|OfANamespace
# Package archives and programs of Debian that the lab and the browser tests use.
CI_PROGRAMS := systemd-analyze ip tc nft ping ss ethtool sysctl chromium iperf3 iperf tcpdump tshark ssh sshd nats-server fio nginx vsftpd smbd pdbedit rsync ganesha.nfsd rpcbind zsh fish mandoc prometheus promtool prometheus-alertmanager amtool victoria-metrics pg_lsclusters
CI_PACKAGES := systemd iproute2 python3-pandas nftables iputils-ping ethtool procps chromium iperf3 iperf tcpdump tshark openssh-client openssh-server nats-server fio nginx-light vsftpd samba rsync nfs-ganesha nfs-ganesha-vfs rpcbind zsh fish mandoc prometheus prometheus-alertmanager victoria-metrics postgresql
# The tests of packages: only where CI runs them.
ifeq ($(THRU_PACKAGES),1)
CI_PROGRAMS += mmdebstrap rpm lintian skopeo umoci runc
CI_PACKAGES += mmdebstrap rpm lintian skopeo umoci runc
endif
# The virtual machines want an emulator too, which is large: only where CI runs them.
ifeq ($(THRU_VMLAB),1)
CI_PROGRAMS += qemu-system-x86_64 busybox mmdebstrap mke2fs
CI_PACKAGES += qemu-system-x86 busybox-static mmdebstrap e2fsprogs
endif
# Other systems: where they are asked for, too.
ifeq ($(THRU_WINE),1)
CI_PROGRAMS += wine ld
CI_PACKAGES += wine wine64 binutils
endif
ifeq ($(THRU_ARM64),1)
CI_PROGRAMS += qemu-aarch64
CI_PACKAGES += qemu-user
endif

.DEFAULT_GOAL := help
.PHONY: help build man-completions test test-all test-release lab interop faults captures watches tunes vmlab wine arm64 truth bench bench-packages pprof perf fuzz lint cross release release-check packages ci-deps clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-14s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The copy of govmomi has the types that the package names.
bin/slim.mod: go.mod go.sum $(wildcard .ci/slim/*.go internal/hypervisor/vsphere/*.go) # and bin/slim.work
	@$(PLAIN) $(GO) run ./.ci/slim $(GO) bin

build: bin/slim.mod ## build bin/thru, one static binary
	$(BUILD) -o bin/thru ./cmd/thru

man-completions: build ## write the manual pages to dist/man, and the completions of the shells to dist/completions
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} bin/thru completion --write dist

# One go test of programs like the released one, built once: packages that wait leave the CPUs to others. The
# command line takes longest and comes first. Fewer random inputs than test-all: -short. More memory for less garbage
# collection. TESTS='-count=1' passes flags on.
test: build ## run all tests but the lab's in a few minutes; needs no root, installs nothing, lists what it skipped
	@mkdir -p bin; rm -f bin/failed; \
	{ export THRU_BINARY=$(abspath bin/thru); \
	  GOGC=400 $(PLAIN) $(GO) test $(SLIM) -v -vet=off -short -p 4 -parallel 4 -timeout 20m $(TESTS) ./internal/cli $$($(GO) list ./... | grep -v -e '^thru/lab' -e '/internal/cli$$') || touch bin/failed; \
	} 2>&1 | awk -f .ci/test-report.awk; \
	test ! -e bin/failed

# Without the race detector where none can be, and in the lab, whose tests run the program that is built. The command line
# comes twice: all of it without, and with it what serves several at once. Packages that take longest come first. What keeps
# time with real iperfs comes by itself, and the lab last and alone, since it measures; its tests that wait run at once.
# What failed of these two is measured once more, test by test: a machine that others share stands still at times.
# Programs of the race detector sleep a second before they end, and the tests run many: GORACE.
test-all: build ## run all tests as CI does: with the race detector, and the lab, which needs root
	@$(if $(RACE),,echo "no C compiler: without the race detector";) \
	rm -f bin/failed bin/again; export GORACE="atexit_sleep_ms=0 $$GORACE" THRU_BINARY=$(abspath bin/thru); \
	$(GO) list $(SEQUENTIAL:%=./%) >bin/sequential; \
	{ GOGC=400 $(PLAIN) $(GO) test $(SLIM) -v -vet=off -p 3 -parallel 4 -timeout 20m ./internal/cli $$(cat bin/sequential) || touch bin/failed; \
	  GOGC=400 $(GO) test $(SLIM) $(NODEBUG) -v -vet=off -p 3 -parallel 4 $(RACE) -timeout 20m ./internal/cli ./internal/control ./internal/bus ./internal/engine/worker ./internal/store ./internal/hypervisor/vsphere $$($(GO) list ./... | grep -vxF -f bin/sequential -e thru/internal/cli -e thru/lab -e thru/lab/faults -e thru/internal/engine/iperf2 -e thru/internal/engine/iperf3) || touch bin/failed; \
	} 2>&1 | awk -f .ci/test-report.awk; \
	{ $(GO) test $(SLIM) $(NODEBUG) -v -vet=off -parallel 4 $(RACE) ./internal/engine/iperf2 ./internal/engine/iperf3 || touch bin/again; \
	  $(PLAIN) $(GO) test $(SLIM) -v -vet=off -p 1 -parallel 5 ./lab ./lab/faults || touch bin/again; \
	} 2>&1 | awk -v again=bin/again -f .ci/test-report.awk; \
	if test -e bin/again; then $(PLAIN) GO='$(GO)' .ci/again bin/again $(SLIM) || touch bin/failed; fi; \
	test ! -e bin/failed

test-release: ## run the tests of what writes the packages, a module of its own
	cd release && $(PLAIN) $(GO) test -vet=off .

lab: ## run the tests in network namespaces, the long ones too, and kill what writes to a store 200 times; needs root, fails where one cannot run
	THRU_REQUIRE_LAB=1 $(GO) test -tags long -count=1 -v -p 1 -parallel 4 -timeout 30m ./lab ./lab/faults ./lab/tuning
	$(GO) test -count=1 -v -timeout 15m ./internal/store -run TestKilled -kills 200

# It runs in the package's folder, so that go test shows the table while it grows.
interop: ## judge thru against real iperf3 and iperf; needs root; RUN=TestInterop/thru-iperf3 chooses, IPERF3=/path adds one
	cd interop && $(GO) test -tags interop -count=1 -timeout 20m -run '$(or $(RUN),TestInterop)'

# One line for each as it ends, and a summary; FAULTS='-keep /tmp/x' passes flags on.
faults: ## have thru explain every fault of the lab, and healthy paths; needs root; RUN=TestFaults/loss chooses, RUNS=3 repeats
	cd lab/faults && $(GO) test -tags faults -count=1 -timeout 60m -run '$(or $(RUN),TestFaults)' -runs $(or $(RUNS),1) $(FAULTS)

# KEEP=/tmp/x keeps the captures; those that are there already are not taken again.
captures: ## have thru explain captures of the lab's faults, taken by tcpdump around iperf3; needs root; RUN=TestCaptures/loss chooses
	cd lab/faults && $(GO) test -tags faults -count=1 -timeout 60m -run '$(or $(RUN),TestCaptures)' $(if $(KEEP),-keep $(abspath $(KEEP))) $(FAULTS)

watches: build ## change paths of the lab that thru watch knows, and see what its alarms say; needs root; 15 minutes; RUN='TestWatchNamesChanges/MTU' chooses
	THRU_BINARY=$(abspath bin/thru) $(GO) test -tags watches -count=1 -v -parallel 4 -timeout 20m ./lab -run '$(or $(RUN),TestWatchNames)'

# RUN='TestCases/^long_small-receive$$' chooses (TUNES=-names lists them), RUN=TestKilled and RUN=TestAA are the others; TUNES='-kills 40 -seed 7' passes flags on.
tunes: ## have thru tune the badly set hosts of the lab, kill it 200 times, compare a path with itself; needs root; hours
	cd lab/tuning && $(GO) test -tags tuning -count=1 -timeout 6h $(if $(RUN),-run '$(RUN)') $(TUNES)

# A kernel of Debian is fetched once and kept in the user's cache. VMLAB_KEEP=/tmp/x keeps the documents.
vmlab: build ## measure and tune real virtual machines under emulation: their adapters, a broken one, rings, jumbo frames, several at once; have the package live under systemd; needs root, QEMU, busybox-static, mmdebstrap; 12 minutes; RUN=TestAdapters chooses
	cd lab/vm && THRU_BINARY=$(abspath bin/thru) $(GO) test -tags vmlab -count=1 -timeout 20m -run '$(or $(RUN),.)'

# Where wine lacks what Go needs, the tests make a library with ld.
wine: build ## run the Windows program under wine: check, serve, test, ladder, stored results, tests of packages; needs wine, ld, iperf3; RUN=TestPairs chooses
	GOOS=windows GOARCH=amd64 $(BUILD) -o bin/thru.exe ./cmd/thru
	cd lab/wine && THRU_BINARY=$(abspath bin/thru) THRU_EXE=$(abspath bin/thru.exe) $(GO) test -tags wine -count=1 -v -timeout 20m -run '$(or $(RUN),.)'

arm64: ## run the tests of the data plane on an emulated arm64 (qemu-user, Linux 6.7); RUN=TestContract chooses
	GOARCH=arm64 $(PLAIN) .ci/arm64 $(GO) test -vet=off -count=1 -p 2 -timeout 30m -run '$(or $(RUN),.)' -skip '$(ARM64_SKIP)' $(ARM64)

# Each figure is of fixed seeds, so that the page changes only with the code.
truth: ## simulate how often each verdict is wrong, and write docs/statistics.md; TRUTH='-only steady' prints one subject
	cd truth && $(PLAIN) $(GO) test -count=1 -timeout 60m -run TestBars -scale 1 -page ../docs/statistics.md $(TRUTH)

bench: build bin/ceiling ## compare with other tools and the machine's limit; BENCH='-only tcp -repeats 9', '-h' for more
	$(GO) test -c -tags bench -o bin/bench ./bench
	bin/bench $(BENCH)

# The limit: the same system calls in C. Without a C compiler bench says that it is missing.
bin/ceiling: bench/ceiling.c
	@mkdir -p bin
	@if command -v $(CC) >/dev/null; then echo "$(CC) $<"; $(CC) -O2 -Wall -Wextra -pthread -o $@ $<; fi

bench-packages: ## run the benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./...

pprof: ## profile the hot path of the worker: Go functions by CPU time
	@mkdir -p bin
	$(GO) test -run '^$$' -bench BenchmarkStream -benchtime 5s -o bin/worker.test -cpuprofile bin/cpu.prof ./internal/engine/worker
	$(GO) tool pprof -top -nodecount 25 bin/worker.test bin/cpu.prof

# cpu-clock is there also where a virtual machine has no hardware events. It counts what runs with interrupts off at the
# function that allows them again. Where the system's default is bbr, its timers are most of a local test without -C cubic.
perf: ## profile a local test with its kernel part (perf, root); PERF='--lean -P 2 -C cubic' measures that
	$(PLAIN) $(GO) build -o bin/thru-symbols ./cmd/thru
	flock -o /tmp/measure.lock perf record -q -e cpu-clock -F 1999 -g -o bin/perf.data bin/thru-symbols test --one-way -t 5 $(PERF)
	perf report -i bin/perf.data --stdio -q --no-children -g none --percent-limit 0.5 | head -40

fuzz: ## run each fuzz test for FUZZTIME (20s)
	@for file in $$(grep -rl --include='*_test.go' '^func Fuzz' .); do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$file); do \
			echo "$$(dirname $$file) $$name"; \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$(dirname $$file) || exit 1; \
		done; \
	done

lint: bin/slim.mod ## check format, vet for SYSTEMS (linux freebsd windows), staticcheck
	@unformatted=$$(find . -name '*.go' ! -path './bin/*' | xargs gofmt -l); test -z "$$unformatted" || { echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; }
	@for os in $(SYSTEMS); do echo "vet $$os"; GOOS=$$os GOGC=400 $(PLAIN) $(GO) vet $(SLIM) -tags bench,interop,faults,long,tuning,vmlab,watches,wine ./... ./.ci/slim || exit 1; done
	GOGC=200 GOWORK=$(abspath bin/slim.work) $(PLAIN) $(GO) run $(STATICCHECK) -tags bench,interop,faults,long,tuning,vmlab,watches,wine ./... ./.ci/slim
	$(PLAIN) $(GO) vet -C release -tags packages ./...
	$(PLAIN) $(GO) run -C release $(STATICCHECK) -tags packages ./...

# The linker prints what it keeps for which reason, and marks functions that may call any method. Go repeats what a
# linker printed for the same main package: one flag more makes that of cross another than that of build.
cross: bin/slim.mod ## build for every system, and hold the binary to its size and to methods that the linker knows; CROSS=linux/amd64 chooses
	@mkdir -p dist
	@for target in $(CROSS); do \
		echo "build $$target"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} $(BUILD:-s=-dumpdep -s) -gcflags='thru/cmd/thru=-e -dwarf=false' -o dist/thru-$${target%/*}-$${target#*/} ./cmd/thru 2>bin/kept || { grep -v -e ' -> ' bin/kept; exit 1; }; \
		grep -v -e ' -> ' bin/kept; \
		any=$$(sed -n 's/^\([^ ]*\) <ReflectMethod> -> .*/\1/p' bin/kept | grep -v '^reflect\.' | sort -u); rm bin/kept; \
		test -z "$$any" || { echo "the linker keeps every exported method, megabytes of them, since a method is called by a name that it does not know (reflect, text/template), in:"; echo "$$any"; exit 1; }; \
	done
	@size=$$(wc -c < dist/thru-linux-amd64); echo "linux/amd64: $$size bytes of $(SIZE_BUDGET)000000"; \
	test $$size -le $(SIZE_BUDGET)000000 || { echo "over the size budget"; exit 1; }

# The files depend on the commit alone: its time is that of all files. SOURCE_DATE_EPOCH sets another.
release: bin/slim.mod ## write packages, archives, an image, bills of materials, checksums and notes to dist; RELEASE_KEY=file signs them (an SSH key)
	@rm -rf bin/release $(filter dist,$(DIST))
	@for target in $(CROSS); do \
		echo "build $$target"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} $(BUILD) -o bin/release/$${target%/*}-$${target#*/}/ ./cmd/thru || exit 1; \
	done
	@own=bin/release/$$($(GO) env GOHOSTOS)-$$($(GO) env GOHOSTARCH)/thru; \
	test -x $$own || { echo "CROSS lacks this system, whose binary writes the manual pages"; exit 1; }; \
	$$own completion --write bin/release/share
	@$(PLAIN) $(GO) build -C release -o ../bin/releaser .
	@bin/releaser -dist $(DIST) -version '$(VERSION)' -maintainer '$(MAINTAINER)' -at $${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} -key '$(RELEASE_KEY)'

# What differs between two builders differs here: folder, time, time zone, rights of new files.
release-check: ## build the committed sources in two folders, and compare the releases byte for byte; CROSS=linux/amd64 chooses
	@folder=$$(mktemp -d); trap 'rm -rf "$$folder"' EXIT; one=$$folder/one other=$$folder/an/other; \
	git clone -q . $$one && $(MAKE) --no-print-directory -C $$one release && \
	(umask 077; git clone -q . $$other && TZ=Asia/Tokyo $(MAKE) --no-print-directory -C $$other release) && \
	diff -r $$one/dist $$other/dist && echo "two builds, the same bytes: $$(ls $$one/dist | wc -l) files"

# mmdebstrap fetches the packages of a small Debian.
packages: ## install, upgrade, run and remove the packages of linux/amd64 in a clean Debian, and run the image; needs root, mmdebstrap, rpm, lintian, umoci, runc; RUN=TestImage chooses
	cd release && $(GO) test -tags packages -count=1 -v -timeout 20m -run '$(or $(RUN),.)' .

# Tests start the servers that they need; the packages start none (invoke-rc.d(8), policy-rc.d).
ci-deps: ## install what the lab needs (Debian, root); for machines that may be changed
	@missing=; for p in $(CI_PROGRAMS); do command -v $$p >/dev/null || missing="$$missing $$p"; done; \
	/usr/bin/python3 -c 'import pandas' 2>/dev/null || missing="$$missing pandas"; \
	if [ -z "$$missing" ]; then echo "nothing to install"; exit 0; fi; \
	echo "missing:$$missing"; \
	policy=/usr/sbin/policy-rc.d; [ -e $$policy ] || { trap "rm -f $$policy" EXIT; printf '#!/bin/sh\nexit 101\n' >$$policy; chmod +x $$policy; }; \
	apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(CI_PACKAGES)

clean: ## remove what the other targets built
	rm -rf bin dist
