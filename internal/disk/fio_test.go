package disk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"thru/internal/measure"
)

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFioOutput reads real output of fio 3.33.
func TestFioOutput(t *testing.T) {
	tests := map[string]struct {
		states int
		bins   int
		length time.Duration
		block  int64
	}{
		"fio-3.33-randread.json": {3, 3, 2500 * time.Millisecond, 4096},
		"fio-3.33-write.json":    {2, 2, 1500 * time.Millisecond, 128 << 10},
		"fio-3.33-null.json":     {1, 0, 300 * time.Millisecond, 128 << 10},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			told := 0
			states, err := readFio(bytes.NewReader(recorded(t, name)), func(fioState) { told++ })
			if err != nil || len(states) != tt.states || told != tt.states {
				t.Fatalf("%d states, %d reported, %v", len(states), told, err)
			}
			o, err := outcomeOf(states)
			if err != nil || o.bytes != o.ops*tt.block || (o.elapsed-tt.length).Abs() > 20*time.Millisecond || len(o.bins) != tt.bins {
				t.Errorf("%+v %v", o, err)
			}
			if l := o.latency; l.Count != o.ops || l.Min < 1 || l.Min > l.P50 || l.P50 > l.P99 || l.P99 > l.P9999 || l.P50 == 0 || l.Max < l.Mean || l.Mean < l.Min {
				t.Errorf("%+v", l)
			}
		})
	}
	_, err := readFio(bytes.NewReader(recorded(t, "fio-3.33-failed.json")), func(fioState) {})
	if !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
}

func TestFioOutputIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "did not report",
		"fio: no such option":   "did not report",
		"{\n":                   "truncated",
		"{\n]\n}\n":             "reading its output",
		"{\n\"jobs\":[]\n}\n":   "0 job groups",
		"{\n\"jobs\":[{}]\n}\n": "no data",
		"{\n\"jobs\":[{\"read\":{\"io_bytes\":-1,\"total_ios\":1}}]\n}\n": "negative",
	} {
		states, err := readFio(strings.NewReader(text), func(fioState) {})
		if err == nil {
			_, err = outcomeOf(states)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzFioOutput: for any output, there are no figures or plausible ones.
func FuzzFioOutput(f *testing.F) {
	for _, name := range []string{"fio-3.33-null.json", "fio-3.33-failed.json"} {
		f.Add(recorded(f, name))
	}
	f.Add([]byte("fio: hello\n{\n\"jobs\":[{\"write\":{\"io_bytes\":8,\"runtime\":3,\"total_ios\":2,\"lat_ns\":{\"min\":1e300,\"mean\":-4}}}]\n}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		states, err := readFio(bytes.NewReader(b), func(fioState) {})
		if err != nil {
			return
		}
		o, err := outcomeOf(states)
		if err != nil {
			return
		}
		figure := o.figure(func(b bin) int64 { return b.bytes })
		if !(figure.Low >= 0 && figure.Low <= figure.Value && figure.Value <= figure.High) || o.latency.Min < 0 || o.latency.Max < 0 || o.latency.P50 < 0 {
			t.Errorf("%+v, %+v", figure, o.latency)
		}
	})
}

// TestFioArguments: fio's arguments match the behaviour of our own workers.
func TestFioArguments(t *testing.T) {
	j := job{pattern: measure.SequentialWrite, block: 128 << 10, size: 10 << 20, workers: 3, length: 1500 * time.Millisecond, cached: true}
	a := j.arguments(false)
	for _, want := range []string{"--rw=write", "--bs=131072", "--numjobs=3", "--runtime=1500ms", "--size=3407872", "--offset_increment=3407872", "--end_fsync=1", "--filename=/proc/self/fd/3"} {
		if !slices.Contains(a, want) {
			t.Errorf("%s is not in %q", want, a)
		}
	}
	if slices.Contains(a, "--direct=1") {
		t.Error("O_DIRECT was not wanted")
	}
	j = job{pattern: measure.RandomRead, target: "/dev/zero", block: 4096, size: 10 << 20, workers: 1, length: time.Second}
	a = j.arguments(true)
	for _, want := range []string{"--rw=randread", "--size=10485760", "--norandommap", "--direct=1", "--filename=/dev/zero"} {
		if !slices.Contains(a, want) {
			t.Errorf("%s is not in %q", want, a)
		}
	}
	j.target = DefaultMemory
	if !slices.Contains(j.arguments(false), "--filename=/proc/self/fd/3") {
		t.Error("a folder is no device")
	}
}
