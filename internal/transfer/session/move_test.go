package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"thru/internal/measure"
	"thru/internal/transfer"
	"thru/internal/transfer/clients"
	"thru/internal/transfer/runner"
)

// shelf is a server in memory, and its own client and session.
type shelf struct {
	mu     sync.Mutex
	files  map[string]string
	locked string // suffix of names that nobody may write or remove
}

func (s *shelf) Open(context.Context) (transfer.Session, error) { return s, nil }
func (*shelf) Info() transfer.Info                              { return transfer.Info{Client: "shelf", Library: true} }
func (*shelf) Sockets() []net.Conn                              { return nil }
func (*shelf) Close() error                                     { return nil }

func (s *shelf) Size(_ context.Context, path string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, ok := s.files[path]
	if !ok {
		return 0, transfer.ErrMissing
	}
	return int64(len(text)), nil
}

func (s *shelf) Get(_ context.Context, path string, w io.Writer) (int64, error) {
	s.mu.Lock()
	text, ok := s.files[path]
	s.mu.Unlock()
	if !ok {
		return 0, transfer.ErrMissing
	}
	n, err := io.Copy(w, bytes.NewBufferString(text))
	return n, err
}

func (s *shelf) Put(_ context.Context, path string, r io.Reader, _ int64, overwrite bool) error {
	text, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.files[path]; there && !overwrite {
		return transfer.ErrExists
	}
	if s.locked != "" && strings.HasSuffix(path, s.locked) {
		return transfer.ErrReadOnly
	}
	s.files[path] = string(text)
	return err
}

func (s *shelf) Remove(_ context.Context, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locked != "" && strings.HasSuffix(path, s.locked) {
		return transfer.ErrReadOnly
	}
	delete(s.files, path)
	return nil
}

// moves runs a transfer like control does, with given options and server.
func moves(t *testing.T, server *shelf, o Options) (*Transfer, error) {
	t.Helper()
	if o.Many == 0 {
		o.Many = 1
	}
	stream, err := runner.NewStream(1)
	if err != nil {
		t.Fatal(err)
	}
	o.Size = 1000
	m := &Transfer{
		Options: o, target: URL{Protocol: "http", host: "h", Path: "f"}, direction: measure.Download, mark: "abcdef", stream: stream,
		protocol: clients.Protocol{Name: "http", New: func(transfer.Config) transfer.Client { return server }}, dialer: &runner.Dialer{},
	}
	if o.Upload {
		m.direction = measure.Upload
	}
	doc := m.Asked()
	err = m.Greet(t.Context(), &doc)
	if err == nil {
		err = m.Settle(t.Context(), &doc)
	}
	for _, layer := range m.Layers() {
		if err == nil {
			_, err = m.Move(t.Context(), layer, nil)
		}
	}
	return m, err
}

// TestWhatIsThereStays verifies the files at the server afterwards, for each
// set of options.
func TestWhatIsThereStays(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cmd   Options
		there []string // with the text "mine"
		mine  []string // unchanged afterwards
		other []string // replaced afterwards
		is    error
		warns bool
	}{
		"generated":                          {cmd: Options{Upload: true}},
		"kept":                               {cmd: Options{Upload: true, Keep: true}, other: []string{"f"}},
		"kept of several":                    {cmd: Options{Upload: true, Keep: true, Many: 2}, other: []string{"f.1", "f.2"}},
		"kept of several, brought back":      {cmd: Options{From: Generated, Keep: true, Many: 2}, other: []string{"f.1", "f.2"}},
		"there already":                      {cmd: Options{Upload: true}, there: []string{"f"}, mine: []string{"f"}, is: transfer.ErrExists},
		"several, another file there":        {cmd: Options{Upload: true, Many: 2}, there: []string{"f"}, mine: []string{"f"}},
		"several, one of theirs there":       {cmd: Options{Upload: true, Many: 2}, there: []string{"f.2"}, mine: []string{"f.2"}, is: transfer.ErrExists},
		"overwrite":                          {cmd: Options{Upload: true, Overwrite: true}, there: []string{"f"}, mine: []string{"f"}, warns: true},
		"overwrite, brought back":            {cmd: Options{From: Generated, Overwrite: true}, there: []string{"f"}, mine: []string{"f"}, warns: true},
		"overwrite of several":               {cmd: Options{Upload: true, Overwrite: true, Many: 3}, there: []string{"f.2"}, mine: []string{"f.2"}, warns: true},
		"overwrite and keep":                 {cmd: Options{Upload: true, Overwrite: true, Keep: true}, there: []string{"f"}, other: []string{"f"}},
		"overwrite with a file":              {cmd: Options{Upload: true, Overwrite: true, From: file}, there: []string{"f"}, other: []string{"f"}},
		"a file":                             {cmd: Options{Upload: true, From: file}, other: []string{"f"}},
		"nothing there to overwrite, at all": {cmd: Options{Upload: true, Overwrite: true}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &shelf{files: map[string]string{}}
			for _, n := range c.there {
				server.files[n] = "mine"
			}
			c.cmd.Unread = true
			m, err := moves(t, server, c.cmd)
			if !errors.Is(err, c.is) || c.is == nil && err != nil {
				t.Errorf("%v, want %v", err, c.is)
			}
			if err := m.Clean(); err != nil {
				t.Error(err)
			}
			if got, want := slices.Sorted(maps.Keys(server.files)), slices.Sorted(slices.Values(slices.Concat(c.mine, c.other))); !slices.Equal(got, want) {
				t.Errorf("at the server is %v, want %v", got, want)
			}
			for n, text := range server.files {
				if (text == "mine") != slices.Contains(c.mine, n) {
					t.Errorf("%s is %.20q", n, text)
				}
			}
			if said := strings.Join(m.Warnings(), "\n"); strings.Contains(said, "keeps the existing file") != c.warns {
				t.Errorf("warnings %q", said)
			}
		})
	}
}

// TestMadeMeanwhile: a file created after the check is not removed.
func TestMadeMeanwhile(t *testing.T) {
	server := &shelf{files: map[string]string{"f.2": "mine"}}
	m, err := moves(t, &shelf{files: map[string]string{}}, Options{Upload: true, Overwrite: true, Many: 2})
	if err != nil {
		t.Fatal(err)
	}
	m.made = nil
	m.protocol.New = func(transfer.Config) transfer.Client { return server }
	if _, err := m.Move(t.Context(), measure.LayerMemory, nil); !errors.Is(err, transfer.ErrExists) {
		t.Errorf("%v, want %v", err, transfer.ErrExists)
	}
	if err := m.Clean(); err != nil || server.files["f.2"] != "mine" {
		t.Errorf("%v, %v", server.files, err)
	}
}

// TestLeft: files that could not be removed are reported in one short line.
func TestLeft(t *testing.T) {
	server := &shelf{files: map[string]string{}}
	m, err := moves(t, server, Options{Upload: true, Small: 300})
	if err == nil {
		_, err = m.Small(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	server.locked = "7"
	err = m.Clean()
	if err == nil || !strings.Contains(err.Error(), "30 files remain at the server, f.thru-small-abcdef-*: ") || !errors.Is(err, transfer.ErrReadOnly) || len(err.Error()) > 200 {
		t.Errorf("%v", err)
	}
	if len(server.files) != 30 {
		t.Errorf("%d files are left", len(server.files))
	}
}

func TestPatterns(t *testing.T) {
	var trials []string
	for i := range 9 {
		trials = append(trials, fmt.Sprintf("f.%d.thru-trial-abcdef-0", i))
	}
	for want, names := range map[string][]string{
		"a, b-1":    {"a", "b-1"},
		"x-*":       {"x-1", "x-2", "x-30", "x-4"},
		"a, b, x-*": {"x-1", "x-2", "a", "b"},
		"f.0.thru-trial-abcdef-*, f.1.thru-trial-abcdef-*, f.2.thru-trial-abcdef-* and others": trials,
	} {
		if got := patterns(names); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSettledBlock: a block size that a server reduces is reported, and the
// smaller one is used.
func TestSettledBlock(t *testing.T) {
	for _, tt := range []struct {
		asked, settled, want int64
		warnings             int
	}{{64 << 20, 1 << 20, 1 << 20, 1}, {4096, 1 << 20, 4096, 0}, {64 << 20, 0, 64 << 20, 0}} {
		m := &Transfer{doc: &measure.Transfer{Asked: measure.Amount{BlockBytes: tt.asked}}}
		for range 2 { // each connection tells
			m.note(transfer.Info{Client: "shelf", Block: int(tt.settled)})
		}
		if got := m.doc.Asked.BlockBytes; got != tt.want || len(m.warnings) != tt.warnings {
			t.Errorf("%+v: %d, %q", tt, got, m.warnings)
		}
	}
}

// TestServersName: the name of a generated file is unique, and within the
// server's limit.
func TestServersName(t *testing.T) {
	m := &Transfer{Options: Options{Many: 2}, direction: "upload", mark: "abcdef", target: URL{Path: "dir/" + strings.Repeat("é", 127)}}
	name := m.name(".thru-memory")
	if a, b := name(0, 0), name(1, 0); len(a) > len("dir/")+255 || a == b || !strings.HasPrefix(a, "dir/é") {
		t.Errorf("%q, %q", a, b)
	}
	if got := m.name("")(0, 0); got != m.target.Path+".1" {
		t.Errorf("%q", got)
	}
}
