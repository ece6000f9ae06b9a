package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/transfer"
	"thru/internal/transfer/runner"
	"thru/internal/transfer/stage"
	"thru/internal/unit"
)

// client returns a new client of the URL.
func (m *Transfer) client() transfer.Client {
	return transfer.Discreet(m.config, m.protocol.New)
}

// clients returns n clients.
func (m *Transfer) clients(n int) (all []transfer.Client) {
	for range n {
		all = append(all, m.client())
	}
	return all
}

// uploads reports whether the transfer is an upload.
func (m *Transfer) uploads() bool { return m.direction == measure.Upload }

// generates reports whether thru generates the data.
func (m *Transfer) generates() bool {
	return m.From == Generated || m.uploads() && m.From == ""
}

// Asked returns the transfer as given on the command line.
func (m *Transfer) Asked() measure.Transfer {
	a := measure.Amount{
		Bytes: m.Size, Files: 1, Clients: m.Many, BlockBytes: int64(m.config.Block), BufferBytes: int64(m.config.Buffer),
		From: "server", To: m.To,
	}
	switch {
	case m.uploads():
		a.To = "server"
	case m.ToFile() != "":
		a.To = "disk"
	case a.To == "":
		a.To = nowhere
	}
	switch {
	case m.generates():
		a.From = "generated"
	case m.uploads():
		a.From = "file"
	}
	return measure.Transfer{URL: m.target.String(), Protocol: m.target.Protocol, Direction: m.direction, Asked: a}
}

// Greet logs in, and checks before any data moves what would fail later.
func (m *Transfer) Greet(ctx context.Context, t *measure.Transfer) error {
	if err := m.local(); err != nil {
		return err
	}
	s, err := m.client().Open(ctx)
	if err != nil {
		return m.unopened(err)
	}
	defer s.Close()
	m.doc = t
	defer func() { m.note(s.Info()) }()
	if m.generates() || m.uploads() {
		return m.vacant(ctx, s)
	}
	size, err := s.Size(ctx, m.target.Path)
	if err != nil {
		return err
	}
	if size == 0 {
		return fault.Failf("send a larger file, or --from generated", "session: %s is empty: there is nothing to measure", m.target)
	}
	m.Size, t.Asked.Bytes = size, size
	return m.room()
}

// unopened adds a hint to an error: where no other is known, another server
// may listen there than the URL says.
func (m *Transfer) unopened(err error) error {
	known := Hinted(err, m.Overwrite)
	if fault.Hint(known) != "" && !errors.Is(err, transfer.ErrShort) {
		return known
	}
	return fault.Failf("check that a server of "+m.target.Protocol+" runs on that port", "%w", err)
}

// local checks the local file.
func (m *Transfer) local() error {
	if from := m.fromFile(); m.uploads() && from != "" {
		info, err := os.Stat(from)
		switch {
		case err != nil:
			return fault.Failf("name a readable file with --from, or --from generated", "session: looking for the file to upload: %w", err)
		case !info.Mode().IsRegular():
			return fault.Failf("name a readable file with --from, or --from generated", "session: %s is not a file", from)
		case info.Size() == 0:
			return fault.Failf("send a larger one, or --from generated", "session: %s is empty: there is nothing to measure", from)
		}
		m.Size = info.Size()
	}
	if m.ToFile() == "" {
		return nil
	}
	f, err := m.file(0, 0)
	if err == nil {
		f.Drop() // it can be created: that was the check
	}
	return err
}

// margin is how much of a disk stays free, in bytes.
const margin = 64 << 20

// room refuses a download that does not fit on the local disk.
func (m *Transfer) room() error {
	to := m.ToFile()
	if to == "" {
		return nil
	}
	if free, known := stage.Room(filepath.Dir(to)); known && m.Size > free-margin {
		return fault.Failf("write to a larger disk, or --to nowhere", "session: the download needs %s, and %s must stay free; %s are free in %s: %w",
			unit.Size(m.Size), unit.Size(margin), unit.Size(free), filepath.Dir(to), transfer.ErrFull)
	}
	return nil
}

// Settle chooses how much is generated, and uploads it where it is to be
// downloaded.
func (m *Transfer) Settle(ctx context.Context, t *measure.Transfer) error {
	if m.Size == 0 {
		size, why, err := m.suggest(ctx)
		if err != nil {
			return err
		}
		m.Size = size
		t.Asked.SizeWhy = why
	}
	t.Asked.Bytes = m.Size
	if !m.generates() || m.uploads() {
		return nil
	}
	if err := m.room(); err != nil {
		return err
	}
	_, err := m.put(ctx, upload{name: m.name(m.nameSuffix), from: m.generated, size: m.Size, files: 1, clients: m.Many, overwrite: m.replaces()})
	return err
}

// generated returns the stream as a file of so many bytes.
func (m *Transfer) generated(size int64) (io.ReadCloser, error) {
	return io.NopCloser(m.stream.Reader(0, size)), nil
}

// upload is a run of files to the server.
type upload struct {
	name      func(client, file int) string
	from      func(size int64) (io.ReadCloser, error)
	size      int64
	files     int // of each client
	clients   int
	overwrite bool
	sum       bool
	peerWatch runner.PeerWatch
}

// put uploads files; Clean removes them.
func (m *Transfer) put(ctx context.Context, u upload) (measure.TransferRun, error) {
	out, err := runner.Run(ctx, runner.Job{
		Direction: measure.Upload, Clients: m.clients(u.clients), Files: u.files, Bytes: u.size, Name: u.name,
		Source: func(int, int) (io.ReadCloser, error) { return u.from(u.size) },
		Sum:    u.sum, Overwrite: u.overwrite, Dialer: m.dialer, Watch: m.Live, PeerWatch: u.peerWatch,
	})
	m.note(out.Info)
	m.made = append(m.made, out.Made...)
	return out.Run, err
}

// note stores a server's information: data connections add to that of the
// first connection.
func (m *Transfer) note(info transfer.Info) {
	if info.Client == "" || m.doc == nil {
		return
	}
	m.info = info
	t := m.doc
	t.Server, t.Client, t.Identity, t.Agreed, t.InFlight = info.Server, info.Client, info.Fingerprint, info.Details, info.InFlight
	if most := int64(info.Block); most > 0 && t.Asked.BlockBytes > most {
		m.warnings = append(m.warnings, fmt.Sprintf("--block: the server accepted %s instead of %s", unit.Size(most), unit.Size(t.Asked.BlockBytes)))
		t.Asked.BlockBytes = most
	}
}

// Layers returns the layers to measure: both with a local file, otherwise
// only the protocol.
func (m *Transfer) Layers() []string {
	if m.uploads() && m.fromFile() != "" || m.ToFile() != "" {
		return []string{measure.LayerMemory, measure.LayerWhole}
	}
	return []string{measure.LayerMemory}
}

// Move runs the transfer of all clients over a layer.
func (m *Transfer) Move(ctx context.Context, layer string, beside runner.PeerWatch) (measure.TransferRun, error) {
	if m.uploads() {
		return m.moveUp(ctx, layer, beside)
	}
	return m.moveDown(ctx, layer, beside)
}

// moveUp uploads generated data, or over the disk the file itself, which
// stays.
func (m *Transfer) moveUp(ctx context.Context, layer string, beside runner.PeerWatch) (measure.TransferRun, error) {
	from, suffix, overwrite, kept := m.generated, m.nameSuffix, m.replaces(), m.Keep
	switch {
	case layer == measure.LayerWhole:
		from, suffix, kept = func(int64) (io.ReadCloser, error) { return os.Open(m.fromFile()) }, "", true
	case m.fromFile() != "": // under another name than the file, which comes last
		suffix, overwrite, kept = ".thru-memory", true, false
	}
	name := m.name(suffix)
	run, err := m.put(ctx, upload{name, from, m.Size, 1, m.Many, overwrite, m.sums(layer), beside})
	if kept && (err == nil || overwrite) { // with overwrite it may be the only file of that name
		m.keep(name)
	}
	if err != nil {
		return run, err
	}
	if run.Layer = layer; layer == measure.LayerWhole && m.sums(layer) {
		if run.SHA256, err = runner.Sum(m.fromFile()); err != nil {
			return run, err
		}
	}
	if !m.Unread {
		m.readBack(ctx, name(0, 0), &run)
	}
	return run, ctx.Err()
}

// readBack downloads the first uploaded file, and compares it.
func (m *Transfer) readBack(ctx context.Context, name string, run *measure.TransferRun) {
	same := &m.stream
	switch {
	case run.CRC32C != "" && !m.generates():
		same = nil // the checksum decides
	case run.Layer != measure.LayerMemory:
		return
	}
	out, err := runner.Run(ctx, runner.Job{
		Direction: measure.Download, Clients: m.clients(1), Files: 1, Bytes: m.Size, Sum: same == nil, Same: same, Through: true,
		Name: func(int, int) string { return name },
		Sink: func(int, int) (runner.Sink, error) { return runner.Nowhere(), nil }, Dialer: m.dialer,
	})
	switch {
	case err != nil:
		m.warnings = append(m.warnings, "the uploaded file could not be read back for comparison: "+err.Error())
	case same != nil:
		run.Checked = out.Run.Checked
	default:
		run.Checked = new(out.Run.CRC32C == run.CRC32C)
	}
}

// moveDown downloads: to nowhere or to memory, or over the disk to the file.
func (m *Transfer) moveDown(ctx context.Context, layer string, beside runner.PeerWatch) (measure.TransferRun, error) {
	job := runner.Job{
		Direction: measure.Download, Clients: m.clients(m.Many), Files: 1, Bytes: m.Size, Name: m.name(m.nameSuffix), Dialer: m.dialer, Watch: m.Live, PeerWatch: beside,
		Sink: m.sink, Sum: m.sums(layer),
	}
	if m.generates() {
		job.Same = &m.stream
	}
	if layer == measure.LayerWhole {
		job.Sink = m.file
	}
	out, err := runner.Run(ctx, job)
	m.note(out.Info)
	if err == nil && layer == measure.LayerWhole && job.Sum { // the data on the disk
		out.Run.SHA256, err = runner.Sum(m.ToFile())
	}
	return out.Run, err
}

// sink returns the destination of a download without a disk.
func (m *Transfer) sink(int, int) (runner.Sink, error) {
	if m.To == memory {
		return runner.Memory(m.Many), nil
	}
	return runner.Nowhere(), nil
}

// sums reports whether a layer has checksums: only the last one does.
func (m *Transfer) sums(layer string) bool {
	all := m.Layers()
	return m.Many == 1 && !m.NoChecksum && layer == all[len(all)-1]
}

// file returns the target of a download.
func (m *Transfer) file(int, int) (runner.Sink, error) {
	f, left, err := runner.NewFile(m.ToFile(), m.Overwrite)
	if left {
		m.warnings = append(m.warnings, runner.PartName(m.ToFile())+" was removed: it was left by an aborted transfer")
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// smallBytes is the size of each small file.
const smallBytes = 64 << 10

// Small uploads or downloads many small files one after the other.
func (m *Transfer) Small(ctx context.Context) (*measure.TransferRun, error) {
	if m.Options.Small == 0 {
		return nil, nil
	}
	name := m.name(".thru-small")
	run, err := m.put(ctx, upload{name: name, from: m.generated, size: smallBytes, files: m.Options.Small, clients: 1, overwrite: true})
	if err == nil && !m.uploads() {
		var out runner.Outcome
		out, err = runner.Run(ctx, runner.Job{
			Direction: measure.Download, Clients: m.clients(1), Files: m.Options.Small, Bytes: smallBytes, Name: name, Same: &m.stream,
			Sink: func(int, int) (runner.Sink, error) { return runner.Nowhere(), nil }, Dialer: m.dialer,
		})
		run = out.Run
	}
	run.Layer = measure.LayerMemory
	return &run, err
}

// Folder returns the folder of the local file; "" where there is none.
func (m *Transfer) Folder() (string, error) {
	file := m.ToFile()
	if m.uploads() {
		file = m.fromFile()
	}
	if file == "" {
		return "", nil
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return "", fmt.Errorf("session: finding the folder of %s: %w", file, err)
	}
	return dir, nil
}

// Warnings returns the warnings of the transfers.
func (m *Transfer) Warnings() []string { return m.warnings }
