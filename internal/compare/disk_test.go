package compare

import (
	"strings"
	"testing"
	"time"

	"thru/internal/measure"
)

// diskResult is a result of `thru disk /srv`: sequential bytes per second, and random accesses per second, each
// with seconds 2% below and above.
func diskResult(bytes, iops float64) *measure.Document {
	figure := func(v float64) *measure.Figure {
		return &measure.Figure{Value: v, Low: 0.98 * v, High: 1.02 * v, Runs: 1, Basis: "bins of a single run"}
	}
	run := func(pattern, target string, block int64, bytes, iops float64) measure.DiskRun {
		return measure.DiskRun{Pattern: pattern, Target: target, BlockBytes: block, Workers: 4, ElapsedNs: 3.004e9, Bytes: figure(bytes), IOPS: figure(iops),
			Latency: &measure.Latency{Count: 1000, P50: 400_000, P99: 900_000}}
	}
	return &measure.Document{Schema: measure.Schema, Thru: "1.0", Command: "disk", StartedAt: began(), EndPoints: []measure.EndPoint{{Name: "local", Facts: facts("alpha", 1500)}},
		Cells: []measure.Cell{}, Disks: []measure.DiskTest{{
			Where: "local", Path: "/srv", Method: "fio-3.33", Cache: "O_DIRECT", FileBytes: 1 << 30, FileSystem: "ext4", Device: "nvme0n1", Scheduler: "none",
			Runs:   []measure.DiskRun{run(measure.SequentialRead, "", 128<<10, bytes, bytes/(128<<10)), run(measure.RandomRead, "", 4096, iops*4096, iops)},
			Memory: []measure.DiskRun{run(measure.SequentialRead, "/dev/shm", 128<<10, 8e9, 61_000)},
		}}}
}

// cellOf returns the comparison of one subject, by the beginning of its words.
func cellOf(t *testing.T, x *measure.Compared, what string) measure.ComparedCell {
	t.Helper()
	for _, c := range x.Cells {
		if strings.HasPrefix(c.What, what) {
			return c
		}
	}
	t.Fatalf("no %q among %+v", what, x.Cells)
	return measure.ComparedCell{}
}

func TestDisks(t *testing.T) {
	x := Of(one(diskResult(3.2e9, 90_000)), one(diskResult(3.2e9, 30_000)), Options{})
	if len(x.Cells) != 3 || x.Outcome != measure.Worse || !x.Regression || !strings.HasPrefix(x.Reason, "figures: 1 worse, 1 undecided") {
		t.Fatalf("%s: %+v", x.Reason, x.Cells)
	}
	random := cellOf(t, x, "random read, blocks of 4 KiB")
	if random.Figure != "iops" || random.Place != "/srv" || random.From != "local" || random.Basis != measure.OfSingles || random.Outcome != measure.Worse || !strings.Contains(random.Reason, "single runs") {
		t.Errorf("%+v", random)
	}
	if c := cellOf(t, x, "sequential read, blocks of 128 KiB"); c.Figure != "bytes_per_s" || c.Baseline || !strings.Contains(c.Reason, "several results on each side") {
		t.Errorf("%+v", c)
	}
	if c := cellOf(t, x, "sequential read of /dev/shm"); !c.Baseline {
		t.Errorf("the baseline decides: %+v", c)
	}
	var guards []string
	for _, g := range random.Guards {
		guards = append(guards, g.Name)
	}
	if strings.Join(guards, ", ") != "latency p50, latency p99" {
		t.Errorf("%q", guards)
	}
}

// Latencies with different numbers of workers are not compared.
func TestDiskWorkers(t *testing.T) {
	after := diskResult(3.2e9, 90_000)
	after.Disks[0].Runs[1].Workers = 8
	if c := cellOf(t, Of(one(diskResult(3.2e9, 90_000)), one(after), Options{}), "random read"); len(c.Guards) > 0 {
		t.Errorf("%+v", c.Guards)
	}
}

func TestDiskSettings(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(d *measure.DiskTest)
		setting string
		refuses bool
	}{
		{"block", func(d *measure.DiskTest) { d.Runs[0].BlockBytes = 1 << 20 }, "block", true},
		{"cache", func(d *measure.DiskTest) {
			d.Cache = "emptied before each step (posix_fadvise): ext4 does not take O_DIRECT, and there is no room"
		}, "page cache", true},
		{"method", func(d *measure.DiskTest) { d.Method = "thru" }, "method", false},
		{"file", func(d *measure.DiskTest) { d.FileBytes = 8 << 30 }, "file", false},
		{"folder", func(d *measure.DiskTest) { d.Path = "/mnt" }, "folder", false},
		{"time", func(d *measure.DiskTest) { d.Runs[0].ElapsedNs = 10.02e9 }, "measured time", false},
		{"the same over another layer", func(d *measure.DiskTest) {
			d.Cache = "O_DIRECT, which overlay passes on to a file system that it does not show"
		}, "", false},
	} {
		after := diskResult(3.2e9, 90_000)
		tt.change(&after.Disks[0])
		x := Of(one(diskResult(3.2e9, 90_000)), one(after), Options{})
		c := cellOf(t, x, "sequential read, ")
		switch {
		case tt.setting == "" && len(c.Settings) == 0:
		case len(c.Settings) != 1 || c.Settings[0].Name != tt.setting || c.Settings[0].Refuses != tt.refuses || (c.Outcome == measure.NotCompared) != tt.refuses:
			t.Errorf("%s: %s, %+v", tt.name, c.Outcome, c.Settings)
		}
	}
}

// A changed property of a disk is a changed fact.
func TestDiskFacts(t *testing.T) {
	after := diskResult(3.2e9, 90_000)
	after.Disks[0].Scheduler, after.Disks[0].Device = "mq-deadline", ""
	x := Of(one(diskResult(3.2e9, 90_000)), one(after), Options{})
	want := measure.FactChange{Of: "local", Fact: "disks[/srv].scheduler", Name: "I/O scheduler of /srv", Before: "none", After: "mq-deadline"}
	if len(x.Facts) != 1 || x.Facts[0] != want {
		t.Errorf("%+v, want %+v", x.Facts, want)
	}
}

// A pattern that was measured before, and not reached after, has failed.
func TestDiskBrokeOff(t *testing.T) {
	after := diskResult(3.2e9, 90_000)
	after.Disks[0].Runs = after.Disks[0].Runs[:1]
	after.Error = &measure.Error{Message: "disk: reading in /srv: input/output error", ExitCode: 1}
	x := Of(one(diskResult(3.2e9, 90_000)), one(after), Options{})
	if c := cellOf(t, x, "random read"); !c.Failed || !strings.Contains(c.Reason, "input/output error") || len(x.Unmatched) > 0 {
		t.Errorf("%+v, alone %+v", c, x.Unmatched)
	}
}

// A disk, a transfer and a flow are never compared with each other.
func TestFamilies(t *testing.T) {
	x := Of(one(diskResult(3.2e9, 90_000)), one(result("local", "local", 10, 1e9)), Options{Anyway: true})
	if len(x.Cells) > 0 || len(x.Unmatched) != 3 || x.Reason != "no figure was measured on both sides" {
		t.Errorf("%s: %+v, %+v", x.Reason, x.Cells, x.Unmatched)
	}
}

// transferResult is a download by sftp, over memory and over the local disk.
func transferResult(memory, disk float64) *measure.Document {
	t := &measure.Transfer{URL: "sftp://anna@files/big", Protocol: "sftp", Direction: measure.Download, Client: "pkg/sftp v1.13", Asked: measure.Amount{Bytes: 1 << 30, Files: 1, Clients: 1, From: "server", To: "disk"}}
	t.Layers = []measure.Layer{{Name: measure.LayerDiskFar, How: "thru disk at the server", Missing: "there is no agent"}, {Name: measure.LayerNetwork, Bps: new(9.4e9), Low: new(9.3e9), High: new(9.41e9)},
		{Name: measure.LayerDiskHere, Bps: new(1.2 * disk), Low: new(1.1 * disk), High: new(1.3 * disk), How: "sequential write by fio-3.33, O_DIRECT"}}
	for _, r := range []struct {
		layer string
		bps   float64
	}{{measure.LayerMemory, memory}, {measure.LayerWhole, disk}} {
		t.Layers = append(t.Layers, measure.Layer{Name: r.layer, Bps: &r.bps})
		t.Runs = append(t.Runs, measure.TransferRun{Layer: r.layer, Bps: &measure.Figure{Value: r.bps, Low: 0.99 * r.bps, High: 1.01 * r.bps, Runs: 1}, SHA256: "x"})
	}
	return &measure.Document{Schema: measure.Schema, Thru: "1.0", Command: "transfer", StartedAt: began(), EndPoints: []measure.EndPoint{{Name: "local", Facts: facts("alpha", 1500)}}, Transfer: t,
		Cells: result("b", "local", 5, 9.4e9).Cells, Findings: []measure.Finding{{Cause: "network"}}}
}

func TestTransfers(t *testing.T) {
	after := transferResult(1.7e9, 0.4e9)
	after.Findings[0].Cause = "disk"
	x := Of(one(transferResult(1.71e9, 1.02e9)), one(after), Options{})
	whole := cellOf(t, x, "sftp download, protocol over disk")
	if len(x.Cells) != 4 || whole.Outcome != measure.Worse || whole.From != "files" || whole.To != "local" || whole.Baseline || whole.Basis != measure.OfSingles {
		t.Fatalf("%d cells: %+v", len(x.Cells), whole)
	}
	for _, what := range []string{"sftp download, network", "sftp download, disk here"} {
		if c := cellOf(t, x, what); !c.Baseline {
			t.Errorf("%s decides", what)
		}
	}
	if len(x.Causes) != 1 || x.Causes[0].Before != "network" || x.Causes[0].After != "disk" {
		t.Errorf("%+v", x.Causes)
	}
}

func TestTransferSettings(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(x *measure.Transfer)
		setting string
		refuses bool
	}{
		{"clients", func(x *measure.Transfer) { x.Asked.Clients = 4 }, "clients", true},
		{"block", func(x *measure.Transfer) { x.Asked.BlockBytes = 64 << 10 }, "block", true},
		{"buffer", func(x *measure.Transfer) { x.Asked.BufferBytes = 65536 }, "socket buffers", true},
		{"size", func(x *measure.Transfer) { x.Asked.Bytes = 2 << 30 }, "size", false},
		{"another file", func(x *measure.Transfer) { x.URL = "sftp://anna@files/other" }, "file", false},
		{"another server", func(x *measure.Transfer) { x.URL = "sftp://anna@store/big" }, "file", false},
		{"another client program", func(x *measure.Transfer) { x.Client = "pkg/sftp v1.14" }, "client", false},
		{"no checksum", func(x *measure.Transfer) { x.Runs[1].SHA256 = "" }, "checksum", false},
	} {
		after := transferResult(1.71e9, 1.02e9)
		tt.change(after.Transfer)
		c := cellOf(t, Of(one(transferResult(1.71e9, 1.02e9)), one(after), Options{}), "sftp download, protocol over disk")
		if len(c.Settings) != 1 || c.Settings[0].Name != tt.setting || c.Settings[0].Refuses != tt.refuses || (c.Outcome == measure.NotCompared) != tt.refuses {
			t.Errorf("%s: %s, %+v", tt.name, c.Outcome, c.Settings)
		}
	}
	ftp, up := transferResult(1.71e9, 1.02e9), transferResult(1.71e9, 1.02e9)
	ftp.Transfer.Protocol, up.Transfer.Direction = "ftp", measure.Upload
	if x := Of(one(transferResult(1.71e9, 1.02e9)), one(ftp), Options{}); x.Outcome != measure.NotCompared || !strings.Contains(x.Cells[0].Reason, "protocol: sftp before, ftp after") {
		t.Errorf("%s: %+v", x.Reason, x.Cells[0])
	}
	if x := Of(one(transferResult(1.71e9, 1.02e9)), one(up), Options{Anyway: true}); len(x.Cells) > 0 {
		t.Errorf("an upload against a download: %+v", x.Cells)
	}
}

// A transfer that failed after is reported, and results of several days are values.
func TestTransfersOfDays(t *testing.T) {
	failed := transferResult(1.71e9, 1.02e9)
	failed.Transfer.Runs[1].Bps, failed.Transfer.Runs[1].Error = nil, &measure.Error{Message: "the server ended it"}
	failed.Transfer.Layers = failed.Transfer.Layers[:4]
	if c := cellOf(t, Of(one(transferResult(1.71e9, 1.02e9)), one(failed), Options{}), "sftp download, protocol over disk"); !c.Failed || !strings.Contains(c.Reason, "the server ended it") {
		t.Errorf("%+v", c)
	}
	var days []*measure.Document
	for i, bps := range []float64{1.71e9, 1.70e9, 1.72e9} {
		d := transferResult(bps, 1.02e9)
		d.StartedAt = began().Add(time.Duration(i) * time.Hour)
		days = append(days, d)
	}
	if c := cellOf(t, Of(days, one(transferResult(1.71e9, 1.02e9)), Options{}), "sftp download, protocol over memory"); c.Basis != measure.OfResults || c.Before.Units != 3 {
		t.Errorf("%+v", c)
	}
}
