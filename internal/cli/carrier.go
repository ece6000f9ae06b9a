package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"thru/internal/control"
	"thru/internal/fault"
	"thru/internal/measure"
	"thru/internal/transfer"
	"thru/internal/transfer/clients"
	"thru/internal/transfer/mover"
	"thru/internal/transfer/own"
	"thru/internal/transfer/stage"
	"thru/internal/unit"
)

// carrier moves the files of one `thru transfer`. It is control's Mover.
type carrier struct {
	cmd       *transferCmd
	target    transferURL
	protocol  clients.Protocol
	direction string
	config    transfer.Config
	dialer    *mover.Dialer
	stream    mover.Stream
	size      int64 // of each file that is large; 0: not known yet
	live      func(mover.Live)

	told     *measure.Transfer // of the document; nil until Greet
	info     transfer.Info     // of the latest session with the server
	beside   string            // between the URL's name and that of generated data, where something has the first
	mark     string            // of this run, in the names of what it makes beside the file: two runs at once do not meet
	made     []string          // files at the server that are to go again
	warnings []string
}

// meet is told the agent at the server, whose clients those of thru:// are.
func (m *carrier) meet(e *control.EndPoint) error {
	if m.protocol.Name != clients.Thru {
		return nil
	}
	if e.Client == nil {
		return fault.Usagef("name an end point where thru serve runs", "%s is no thru: it moves no files", e.Name)
	}
	if most := e.Hello.Limits.Sessions; m.cmd.Many > most {
		return fault.Usagef(fmt.Sprintf("--many %d is the most there; thru serve --max-sessions N allows more", most), "--many %d is above the limit of %s", m.cmd.Many, e.Name)
	}
	m.protocol.New = own.NewEnd(e.Client, e.Hello, e.DataHosts).Client
	return nil
}

// client is a new client of the URL.
func (m *carrier) client() transfer.Client {
	return transfer.Discreet(m.config, m.protocol.New)
}

// clients are as many as are to work at once.
func (m *carrier) clients(n int) (all []transfer.Client) {
	for range n {
		all = append(all, m.client())
	}
	return all
}

// uploads tells whether the server's file comes from here.
func (m *carrier) uploads() bool { return m.direction == measure.Upload }

// generates tells whether thru makes the data.
func (m *carrier) generates() bool {
	return m.cmd.From == fromGenerated || m.uploads() && m.cmd.From == ""
}

// asked is the transfer as far as the command line says it.
func (m *carrier) asked() measure.Transfer {
	a := measure.Amount{
		Bytes: m.size, Files: 1, Clients: m.cmd.Many, BlockBytes: int64(m.config.Block), BufferBytes: int64(m.config.Buffer),
		From: "server", To: m.cmd.To,
	}
	switch {
	case m.uploads():
		a.To = "server"
	case m.cmd.toFile() != "":
		a.To = "disk"
	case a.To == "":
		a.To = toNowhere
	}
	switch {
	case m.generates():
		a.From = "generated"
	case m.uploads():
		a.From = "file"
	}
	return measure.Transfer{URL: m.target.String(), Protocol: m.target.protocol, Direction: m.direction, Asked: a}
}

// Greet logs in, and finds out before any data moves what would fail later.
func (m *carrier) Greet(ctx context.Context, t *measure.Transfer) error {
	if err := m.local(); err != nil {
		return err
	}
	s, err := m.client().Open(ctx)
	if err != nil {
		return m.unopened(err)
	}
	defer s.Close()
	m.told = t
	defer func() { m.note(s.Info()) }()
	if m.generates() || m.uploads() {
		return m.vacant(ctx, s)
	}
	size, err := s.Size(ctx, m.target.path)
	if err != nil {
		return err
	}
	if size == 0 {
		return fault.Failf("a larger file, or --from generated", "cli: %s is empty: there is nothing to measure", m.target)
	}
	m.size, t.Asked.Bytes = size, size
	return m.room()
}

// unopened adds to an error what can be done: where nobody knows more, another
// server may listen there than the URL says.
func (m *carrier) unopened(err error) error {
	known := hinted(err, m.cmd.Overwrite)
	if fault.Hint(known) != "" && !errors.Is(err, transfer.ErrShort) {
		return known
	}
	return fault.Failf("is that a server of "+m.target.protocol+", and is that its port?", "%w", err)
}

// local looks at the file of this end.
func (m *carrier) local() error {
	if from := m.cmd.fromFile(); m.uploads() && from != "" {
		info, err := os.Stat(from)
		switch {
		case err != nil:
			return fault.Failf("--from names a file that can be read, or generated", "cli: looking for the file to upload: %w", err)
		case !info.Mode().IsRegular():
			return fault.Failf("--from names a file that can be read, or generated", "cli: %s is no file", from)
		case info.Size() == 0:
			return fault.Failf("a larger one, or --from generated", "cli: %s is empty: there is nothing to measure", from)
		}
		m.size = info.Size()
	}
	if m.cmd.toFile() == "" {
		return nil
	}
	f, err := m.file(0, 0)
	if err == nil {
		f.Drop() // that it can be made is known
	}
	return err
}

// margin is how much of a disk is left free, in bytes.
const margin = 64 << 20

// room refuses a download that this end's disk cannot take.
func (m *carrier) room() error {
	to := m.cmd.toFile()
	if to == "" {
		return nil
	}
	if free, known := stage.Room(filepath.Dir(to)); known && m.size > free-margin {
		return fault.Failf("a file on a larger disk, or --to nowhere", "cli: %s are to come, and %s to stay free, where %s are free in %s: %w",
			unit.Size(m.size), unit.Size(margin), unit.Size(free), filepath.Dir(to), transfer.ErrFull)
	}
	return nil
}

// Settle chooses how much is generated, and has it uploaded where it is to be downloaded.
func (m *carrier) Settle(ctx context.Context, t *measure.Transfer) error {
	if m.size == 0 {
		size, why, err := m.suggest(ctx)
		if err != nil {
			return err
		}
		m.size = size
		t.Asked.SizeWhy = why
	}
	t.Asked.Bytes = m.size
	if !m.generates() || m.uploads() {
		return nil
	}
	if err := m.room(); err != nil {
		return err
	}
	_, err := m.put(ctx, upload{name: m.name(m.beside), from: m.generated, size: m.size, files: 1, clients: m.cmd.Many, overwrite: m.replaces()})
	return err
}

// generated is the stream as a file of so many bytes.
func (m *carrier) generated(size int64) (io.ReadCloser, error) {
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
	beside    mover.Beside
}

// put uploads files, which Clean removes.
func (m *carrier) put(ctx context.Context, u upload) (measure.TransferRun, error) {
	out, err := mover.Run(ctx, mover.Job{
		Direction: measure.Upload, Clients: m.clients(u.clients), Files: u.files, Bytes: u.size, Name: u.name,
		Source: func(int, int) (io.ReadCloser, error) { return u.from(u.size) },
		Sum:    u.sum, Overwrite: u.overwrite, Dialer: m.dialer, Watch: m.live, Beside: u.beside,
	})
	m.note(out.Info)
	m.made = append(m.made, out.Made...)
	return out.Run, err
}

// note keeps what a server has said of itself: data connections tell more than the first one.
func (m *carrier) note(info transfer.Info) {
	if info.Client == "" || m.told == nil {
		return
	}
	m.info = info
	t := m.told
	t.Server, t.Client, t.Identity, t.Agreed, t.InFlight = info.Server, info.Client, info.Fingerprint, info.Details, info.InFlight
	if most := int64(info.Block); most > 0 && t.Asked.BlockBytes > most {
		m.warnings = append(m.warnings, fmt.Sprintf("--block: the server settled for %s, and not for %s", unit.Size(most), unit.Size(t.Asked.BlockBytes)))
		t.Asked.BlockBytes = most
	}
}

// Layers are those that there is something to measure of: with a file of this
// end both, else the protocol alone.
func (m *carrier) Layers() []string {
	if m.uploads() && m.cmd.fromFile() != "" || m.cmd.toFile() != "" {
		return []string{measure.LayerMemory, measure.LayerWhole}
	}
	return []string{measure.LayerMemory}
}

// Move makes the transfer of all clients over a layer.
func (m *carrier) Move(ctx context.Context, layer string, beside control.Beside) (measure.TransferRun, error) {
	if m.uploads() {
		return m.moveUp(ctx, layer, beside)
	}
	return m.moveDown(ctx, layer, beside)
}

// moveUp uploads generated data, or over the disk the file itself, which stays.
func (m *carrier) moveUp(ctx context.Context, layer string, beside control.Beside) (measure.TransferRun, error) {
	from, suffix, overwrite, kept := m.generated, m.beside, m.replaces(), m.cmd.Keep
	switch {
	case layer == measure.LayerWhole:
		from, suffix, kept = func(int64) (io.ReadCloser, error) { return os.Open(m.cmd.fromFile()) }, "", true
	case m.cmd.fromFile() != "": // beside the place of the file, which comes last
		suffix, overwrite, kept = ".thru-memory", true, false
	}
	name := m.name(suffix)
	run, err := m.put(ctx, upload{name, from, m.size, 1, m.cmd.Many, overwrite, m.sums(layer), beside})
	if kept && (err == nil || overwrite) { // with overwrite it may be all that there is of that name
		m.keep(name)
	}
	if err != nil {
		return run, err
	}
	if run.Layer = layer; layer == measure.LayerWhole && m.sums(layer) {
		if run.SHA256, err = mover.Sum(m.cmd.fromFile()); err != nil {
			return run, err
		}
	}
	if !m.cmd.Unread {
		m.readBack(ctx, name(0, 0), &run)
	}
	return run, ctx.Err()
}

// readBack downloads the first file that was uploaded, and compares it.
func (m *carrier) readBack(ctx context.Context, name string, run *measure.TransferRun) {
	same := &m.stream
	switch {
	case run.CRC32C != "" && !m.generates():
		same = nil // the sum says it
	case run.Layer != measure.LayerMemory:
		return
	}
	out, err := mover.Run(ctx, mover.Job{
		Direction: measure.Download, Clients: m.clients(1), Files: 1, Bytes: m.size, Sum: same == nil, Same: same, Through: true,
		Name: func(int, int) string { return name },
		Sink: func(int, int) (mover.Sink, error) { return mover.Nowhere(), nil }, Dialer: m.dialer,
	})
	switch {
	case err != nil:
		m.warnings = append(m.warnings, "what was uploaded could not be read back to compare it: "+err.Error())
	case same != nil:
		run.Checked = out.Run.Checked
	default:
		run.Checked = new(out.Run.CRC32C == run.CRC32C)
	}
}

// moveDown downloads: to nowhere or to memory, or over the disk to the file.
func (m *carrier) moveDown(ctx context.Context, layer string, beside control.Beside) (measure.TransferRun, error) {
	job := mover.Job{
		Direction: measure.Download, Clients: m.clients(m.cmd.Many), Files: 1, Bytes: m.size, Name: m.name(m.beside), Dialer: m.dialer, Watch: m.live, Beside: beside,
		Sink: m.sink, Sum: m.sums(layer),
	}
	if m.generates() {
		job.Same = &m.stream
	}
	if layer == measure.LayerWhole {
		job.Sink = m.file
	}
	out, err := mover.Run(ctx, job)
	m.note(out.Info)
	if err == nil && layer == measure.LayerWhole && job.Sum { // what is on the disk now
		out.Run.SHA256, err = mover.Sum(m.cmd.toFile())
	}
	return out.Run, err
}

// sink is where a download goes that ends at no disk.
func (m *carrier) sink(int, int) (mover.Sink, error) {
	if m.cmd.To == toMemory {
		return mover.Memory(m.cmd.Many), nil
	}
	return mover.Nowhere(), nil
}

// sums tells whether checksums are taken over a layer: only the last one has them.
func (m *carrier) sums(layer string) bool {
	all := m.Layers()
	return m.cmd.Many == 1 && !m.cmd.NoChecksum && layer == all[len(all)-1]
}

// file is the target of a download.
func (m *carrier) file(int, int) (mover.Sink, error) {
	f, left, err := mover.NewFile(m.cmd.toFile(), m.cmd.Overwrite)
	if left {
		m.warnings = append(m.warnings, mover.PartName(m.cmd.toFile())+" was removed: a transfer that was killed had left it")
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Small uploads, or downloads, many small files one after the other.
func (m *carrier) Small(ctx context.Context) (*measure.TransferRun, error) {
	if m.cmd.Small == 0 {
		return nil, nil
	}
	name := m.name(".thru-small")
	run, err := m.put(ctx, upload{name: name, from: m.generated, size: smallBytes, files: m.cmd.Small, clients: 1, overwrite: true})
	if err == nil && !m.uploads() {
		var out mover.Outcome
		out, err = mover.Run(ctx, mover.Job{
			Direction: measure.Download, Clients: m.clients(1), Files: m.cmd.Small, Bytes: smallBytes, Name: name, Same: &m.stream,
			Sink: func(int, int) (mover.Sink, error) { return mover.Nowhere(), nil }, Dialer: m.dialer,
		})
		run = out.Run
	}
	run.Layer = measure.LayerMemory
	return &run, err
}

// folder is that of the file at this end; "" where none takes part.
func (m *carrier) folder() (string, error) {
	file := m.cmd.toFile()
	if m.uploads() {
		file = m.cmd.fromFile()
	}
	if file == "" {
		return "", nil
	}
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return "", fmt.Errorf("cli: finding the folder of %s: %w", file, err)
	}
	return dir, nil
}

// Warnings are what is to be said of the transfers.
func (m *carrier) Warnings() []string { return m.warnings }
