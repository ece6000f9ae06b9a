package iperfdoc

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"thru/internal/measure"
)

// recorded returns documents that the real programs printed.
func recorded(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/" + pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s in testdata: %v", pattern, err)
	}
	files := map[string][]byte{}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(n)] = b
	}
	return files
}

// one reads a file of a single document.
func one(t testing.TB, text []byte) *measure.Document {
	t.Helper()
	docs, _, err := Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) != 1 {
		t.Fatalf("%d documents", len(docs))
	}
	return docs[0]
}

// keyPaths lists the keys of a document in order, those of lists once.
func keyPaths(t testing.TB, text []byte) []string {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	var paths []string
	var walk func(at string)
	walk = func(at string) {
		tok, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		d, ok := tok.(json.Delim)
		if !ok {
			return
		}
		for dec.More() {
			next := at + "[]"
			if d == '{' {
				key, _ := dec.Token()
				next = at + "." + key.(string)
			}
			if !slices.Contains(paths, next) {
				paths = append(paths, next)
			}
			walk(next)
		}
		dec.Token()
	}
	walk("")
	return paths
}

// TestKeys compares the output of Write with that of iperf3 3.21: the same keys in the same order. Each recorded document goes through Read and Write.
func TestKeys(t *testing.T) {
	for name, text := range recorded(t, "3.21-*.json") {
		if strings.Contains(name, "stream") || strings.Contains(name, "refused") || strings.Contains(name, "server-json") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			want := keyPaths(t, text)
			var out bytes.Buffer
			r := FromDocument(one(t, text))
			if name == "3.21-title.json" {
				r.Test.Title, r.Test.Extra = "my title", "extra"
			}
			if err := r.Write(&out); err != nil {
				t.Fatal(err)
			}
			got := keyPaths(t, out.Bytes())
			if strings.Contains(name, "serverside") { // a server prints the head in another order
				slices.Sort(got)
				slices.Sort(want)
			}
			if !slices.Equal(got, want) {
				for _, k := range want {
					if !slices.Contains(got, k) {
						t.Errorf("%s is missing", k)
					}
				}
				for _, k := range got {
					if !slices.Contains(want, k) {
						t.Errorf("%s is not iperf3's", k)
					}
				}
				if !t.Failed() {
					t.Errorf("order\n got %q\nwant %q", got, want)
				}
			}
		})
	}
}

// A server's first direction is the one that its client sends: there it receives.
func TestServerBothDirections(t *testing.T) {
	doc := one(t, recorded(t, "3.21-bidir.json")["3.21-bidir.json"])
	for i := range doc.Cells {
		s := &doc.Cells[i].Spec
		s.DialFrom = !s.DialFrom // the end that recorded the seconds was the server
	}
	r := FromDocument(doc)
	if !r.Test.Server || len(r.End.Directions) != 2 || r.End.Directions[0].Sends || !r.End.Directions[1].Sends {
		t.Errorf("server %t, at the end %+v", r.Test.Server, r.End.Directions)
	}
	if w := r.Intervals[0].Directions; len(w) != 2 || w[0].Sends || w[0].Streams[0].Socket != r.Test.Conns[0].Socket {
		t.Errorf("in an interval %+v, connected %+v", w, r.Test.Conns)
	}
}

// TestValues compares the figures that scripts read with the recorded ones.
func TestValues(t *testing.T) {
	for name, text := range recorded(t, "3.*-*.json") {
		if strings.Contains(name, "stream") || strings.Contains(name, "refused") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Write(&out, one(t, text)); err != nil {
				t.Fatal(err)
			}
			got, want := leaves(t, out.Bytes()), leaves(t, text)
			for path, w := range want {
				if excepted(path, name) {
					continue
				}
				if g, ok := got[path]; !ok || !alike(g, w) {
					t.Errorf("%s is %v, recorded %v", path, g, w)
				}
			}
		})
	}
}

// excepted returns the figures that change on the way through Read and Write, each for a reason.
func excepted(path, name string) bool {
	last := path[strings.LastIndexByte(path, '.')+1:]
	switch {
	case slices.Contains([]string{"socket", "version", "cookie", "system_info", "title", "extra_data"}, last):
		return true // generated again, or not kept
	case strings.HasPrefix(path, ".start.tcp_mss_default"), strings.HasPrefix(path, ".start.sndbuf"), strings.HasPrefix(path, ".start.rcvbuf"):
		return true // of the streams
	case strings.HasPrefix(path, ".server_output_json"):
		return true // becomes evidence
	case strings.Contains(name, "omit") && strings.HasPrefix(path, ".intervals"):
		return true // the omitted intervals are gone
	case strings.Contains(name, "omit") || strings.Contains(name, "bidir") && !strings.Contains(path, "streams[0]"):
		// iperf3 includes the omitted seconds, and for the far end's senders prints its own receiving sockets.
		return slices.Contains([]string{"max_snd_cwnd", "max_snd_wnd", "max_rtt", "min_rtt", "mean_rtt"}, last)
	}
	return false
}

func alike(got, want any) bool {
	g, ok1 := got.(float64)
	w, ok2 := want.(float64)
	if !ok1 || !ok2 {
		return got == want
	}
	return math.Abs(g-w) <= 0.005*math.Abs(w)+1e-3
}

// leaves returns the values of a document by path.
func leaves(t testing.TB, text []byte) map[string]any {
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(at+"."+k, x)
			}
		case []any:
			for i, x := range v {
				walk(at+"["+string(rune('0'+i))+"]", x)
			}
		default:
			all[at] = v
		}
	}
	walk("", doc)
	return all
}
